"""Every feature on five servers: made, used, used while the server that leads most is dead, used
after all were killed. `python -m tests.matrix` does so at all replicas, in file and memory."""

import pytest

from tests.matrix.features import FEATURES
from tests.matrix.play import walked

pytestmark = pytest.mark.processes


async def test_all_features_hold_while_servers_die() -> None:
    assert await walked([(3, "file")], FEATURES) == []
