"""A few starts of mixed clusters, and that it would be told if something was missing."""

import pytest

from jsctl.testing import Broker
from tests.faults import starts

SEED = 15
"""Two servers in a, one in b and c each, a leaf node at a."""


@pytest.mark.processes
@pytest.mark.parametrize("seed", [10, 25])
async def test_servers_of_both_kinds_find_each_other(seed: int) -> None:
    assert await starts.play(seed) == ""


def test_links_that_are_not_there_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(server: Broker, path: str) -> dict[str, object]:
        return {"routes": [], "leafs": [], "server_id": server.name}

    monkeypatch.setattr(starts, "page", nothing)
    made = starts.Start.of(SEED)
    try:
        found = made.missing()
    finally:
        made.close()
    assert "a1 has 0 routes to a2" in found
    assert "b1 is not connected to a" in found
    assert "x has 0 hubs" in found
    assert "a has connections of {}" in found
    assert "a has 0 leaf nodes" in found
