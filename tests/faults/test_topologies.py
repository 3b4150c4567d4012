"""One of the faults between clusters, and what would be told of a wrong end."""

from collections import Counter

import pytest

from tests.faults import topologies


@pytest.mark.processes
async def test_a_leaf_node_that_is_cut_off_catches_up() -> None:
    told = await topologies.play("leaf cut", 0.0)
    assert told.startswith("ok: ")


async def test_a_word_that_comes_twice_is_told() -> None:
    stage = topologies.Stage.__new__(topologies.Stage)
    stage.words, stage.heard = 0, {"a": Counter({b"1": 2})}
    stage.clients = {"a": _Nobody()}  # type: ignore[dict-item]
    with pytest.raises(AssertionError, match="came twice"):
        await stage.is_whole()


class _Nobody:
    """Publishes nothing."""

    async def publish(self, subject: str, payload: bytes) -> None:
        """See the class."""
