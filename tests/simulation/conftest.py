"""Import path of the simulation, and what is noted of planted bugs that were found."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = str(Path(__file__).resolve().parents[2])
if _ROOT not in sys.path:  # The harness is imported as tests.simulation.*
    sys.path.insert(0, _ROOT)


@pytest.fixture(scope="session", autouse=True)
def _outcomes_of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plans that several tests look at are run by one of them."""
    from tests.simulation.outcomes import OUTCOMES

    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with OUTCOMES.shared(tmp_path_factory.getbasetemp().parent / "outcomes"):
        yield


@pytest.fixture(autouse=True)
def _planted_bugs(request: pytest.FixtureRequest) -> Iterator[None]:
    """With the report of a test goes which planted bug it found, and how."""
    yield
    if request.node.get_closest_marker("planted") is None:
        return
    from tests.simulation.hunting import found

    for one in found:
        request.node.user_properties.append((one.bug, (one.plan, one.told)))
        print(f"found by {one.plan}: {one.told}")
    found.clear()
