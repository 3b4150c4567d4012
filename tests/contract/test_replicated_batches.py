"""Atomic batches of replicated streams, in a cluster of either kind."""

import json
from collections.abc import AsyncIterator, Iterator

import nats
import pytest
from nats.aio.client import Client

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.contract.test_atomic_batches import (
    COMMITS,
    INCOMPLETE,
    NOTHING,
    STAGED,
    ask,
    create,
    part,
    publish,
    send,
)
from tests.support.waiting import eventually

WAIT_S = 30.0


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        yield running


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """A connection to one of them."""
    made = await nats.connect(cluster.urls[0], connect_timeout=int(WAIT_S))
    yield made
    await made.close()


@pytest.mark.parametrize("case", COMMITS)
async def test_a_batch_is_judged_as_a_whole(client: Client, fresh: str, case: str) -> None:
    config, batch, expected = COMMITS[case]
    await create(client, fresh, num_replicas=3, **config)
    named = json.loads(json.dumps(batch).replace("NAME", fresh))
    answer = await send(client, fresh, named)
    if isinstance(expected, int):
        assert answer == {"stream": fresh, "seq": expected, "batch": "b", "count": expected}
    else:
        assert answer[0] == expected[0] and expected[1] in answer[1]
        answer = await send(client, fresh, [("z", NOTHING)])
        assert answer["seq"] == 1
    assert (await ask(client, f"STREAM.INFO.{fresh}"))["state"]["last_seq"] == answer["seq"]
    await ask(client, f"STREAM.DELETE.{fresh}")


async def test_a_new_leader_knows_nothing_of_a_batch(client: Client, fresh: str) -> None:
    await create(client, fresh, num_replicas=3)
    before = (await ask(client, f"STREAM.INFO.{fresh}"))["cluster"]["leader"]
    assert await publish(client, f"{fresh}.a", part(1)) == STAGED
    assert (await ask(client, f"STREAM.LEADER.STEPDOWN.{fresh}"))["success"]

    async def moved() -> bool:
        found = await ask(client, f"STREAM.INFO.{fresh}")
        return bool(found.get("cluster", {}).get("leader") not in (None, "", before))

    await eventually(moved, "another server to lead", WAIT_S)
    assert await publish(client, f"{fresh}.a", part(2, "1")) == INCOMPLETE
    assert (await send(client, fresh, [("a", NOTHING)] * 3))["seq"] == 3
