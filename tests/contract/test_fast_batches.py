"""Fast batches: what is stored, how often its publisher hears of it, and how a batch ends."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.contract.test_atomic_batches import ask
from tests.support.fast_publishing import (
    APPEND,
    COMMIT,
    END,
    NONE,
    PING,
    SCRIPTS,
    START,
    begin,
    done,
    flow,
    gap,
    refused,
)
from tests.support.waiting import eventually

WAIT_S = 10.0


async def create(client: Client, name: str, **more: Any) -> None:
    """A stream that takes fast batches, and everything below its name."""
    config = {"name": name, "subjects": [f"{name}.>"], "allow_batched": True, **more}
    made = await ask(client, f"STREAM.CREATE.{name}", config)
    assert "error" not in made, made


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("case", SCRIPTS)
async def test_each_message_has_its_answers(
    client: Client, js: JetStreamContext, fresh: str, case: str, storage: str
) -> None:
    gaps, every, steps, count = SCRIPTS[case]
    await create(client, fresh, storage=storage)
    batch = await begin(client, fresh)
    batch.gaps, batch.flow = gaps, every
    await batch.play(steps)
    assert (await js.stream_info(fresh)).state.messages == count


PATTERNS: list[tuple[str, int, str, int | str, int | str]] = [
    ("b", 10, "fail", 1, 5),
    ("b", 10, "fail", 1, "x"),
    ("b", 10, "fail", 1, -1),
    ("b", 10, "maybe", 1, START),
    ("b", 10, "fail", 0, START),
    ("b", 10, "fail", 2, START),
    ("b", 10, "fail", 1, APPEND),
    ("b", 10, "fail", 1, END),
    ("b", 10, "fail", -1, APPEND),
    ("b", 10, "fail", "x", APPEND),
    ("b", 10, "fail", 18446744073709551615, APPEND),
    ("b", 10, "fail", 18446744073709551616, APPEND),
]


async def test_what_cannot_be_understood(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    batch = await begin(client, fresh)
    invalid = refused(10206, "batch publish pattern is invalid")
    for name, every, gaps, seq, operation in PATTERNS:
        batch.name, batch.flow, batch.gaps = name, every, gaps
        await batch.send(seq, operation)
        assert await batch.heard() == invalid, (seq, operation)
    batch.name, batch.gaps = "n" * 65, "ok"
    await batch.send(1, START)
    assert await batch.heard() == refused(10207, "batch publish ID is invalid")
    batch.name, batch.gaps = "n" * 64, "fail"
    for flow_, every in ((0, 10), (-5, 10), ("x", 10), (70_000, 500), (7, 7)):
        batch.flow = flow_
        await batch.send(1, START)
        assert await batch.heard() == flow(0, every)
        await batch.send(2, END)
        assert (await batch.heard())["count"] == 1
    assert (await js.stream_info(fresh)).state.messages == 5


async def test_several_share_what_there_is(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh)
    one, other = await begin(client, fresh), await begin(client, fresh)
    one.flow, other.flow, other.name = 4, 100, "c"
    await one.play([(1, START, NONE, [flow(0, 4)]), (2, APPEND, NONE, [])])
    await other.play(
        [
            (1, START, NONE, [flow(0, 1), flow(1, 2)]),
            (2, APPEND, NONE, []),
            (3, APPEND, NONE, [flow(3, 4)]),
            (4, APPEND, NONE, []),
        ]
    )
    await one.play([(3, APPEND, NONE, []), (4, APPEND, NONE, [flow(4, 4)])])
    await one.play([(5, COMMIT, NONE, [done(9, 5)])])
    await other.send(5, COMMIT)
    assert await other.heard() == {**done(10, 5), "batch": "c"}


async def test_a_large_batch_is_stored_in_order(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh)
    batch = await begin(client, fresh)
    batch.flow = 100
    await batch.send(1, START)
    assert await batch.heard() == flow(0, 100)
    for seq in range(2, 1_000):
        await batch.send(seq, APPEND)
    await batch.send(1_000, COMMIT)
    told = [await batch.heard() for _ in range(10)]
    assert told == [*[flow(seq, 100) for seq in range(100, 1_000, 100)], done(1_000, 1_000)]
    assert (await js.stream_info(fresh)).state.messages == 1_000


async def test_too_many_at_once(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    batch = await begin(client, fresh)
    for number in range(1_001):
        batch.name = f"b{number}"
        await batch.send(1, START)
    too_many = refused(10211, "batch publish too many inflight", 429)
    while await batch.heard() != too_many:
        pass
    await js.delete_stream(fresh)


async def test_one_of_which_nothing_comes_is_forgotten(kind_config: Any, fresh: str) -> None:
    client = kind_config
    await create(client, fresh)
    batch = await begin(client, fresh)
    await batch.play([(1, START, NONE, [flow(0, 10)])])

    async def forgotten() -> bool:
        other = await begin(client, fresh)
        other.name, other.flow = "x", 10
        await other.send(1, START)
        found = (await other.heard())["msgs"]
        await other.send(2, END)
        while "count" not in await other.heard():
            pass
        return bool(found == 10)

    await eventually(forgotten, "the batch to be forgotten: who comes next is alone", WAIT_S)
    await batch.play([(2, APPEND, NONE, [refused(10208, "batch publish ID unknown")])])


@pytest.fixture(params=list(KINDS))
async def kind_config(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A connection to a server that waits for half a second."""
    text = 'jetstream { limits { batch { timeout: "500ms" } } }'
    with KINDS[str(request.param)]("-js", name="brief", config=text) as broker:
        made = await nats.connect(broker.url, connect_timeout=int(WAIT_S))
        yield made
        await made.close()


async def test_what_is_switched_off_ends(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    batch = await begin(client, fresh)
    await batch.play([(1, START, NONE, [flow(0, 10)])])
    config = (await ask(client, f"STREAM.INFO.{fresh}"))["config"]
    assert config["allow_batched"] is True and config["metadata"]["_nats.req.level"] == "4"
    del config["allow_batched"]
    await ask(client, f"STREAM.UPDATE.{fresh}", config)
    await batch.play([(2, APPEND, NONE, [refused(10205, "batch publish is disabled")])])
    await ask(client, f"STREAM.UPDATE.{fresh}", {**config, "allow_batched": True})
    await batch.play([(2, APPEND, NONE, [refused(10208, "batch publish ID unknown")])])
    mirror = {"name": f"{fresh}M", "mirror": {"name": fresh}, "allow_batched": True}
    made = await ask(client, f"STREAM.CREATE.{fresh}M", mirror)
    assert made["error"]["err_code"] == 10209


async def test_counters_interest_and_transforms(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, f"{fresh}C", allow_msg_counter=True)
    batch = await begin(client, f"{fresh}C")
    increment = {"Nats-Incr": "5"}
    await batch.play([(1, START, increment, [flow(0, 10)]), (2, COMMIT, increment, [done(2, 2)])])
    assert (await js.get_msg(f"{fresh}C", 2)).data == b'{"val":"10"}'
    await create(client, f"{fresh}I", retention="interest")
    batch = await begin(client, f"{fresh}I")
    await batch.play([(1, START, NONE, [flow(0, 10)]), (2, COMMIT, NONE, [done(2, 2)])])
    assert (await js.stream_info(f"{fresh}I")).state.messages == 0
    transform = {"src": f"{fresh}T.a", "dest": f"{fresh}T.b"}
    await create(client, f"{fresh}T", subject_transform=transform)
    batch = await begin(client, f"{fresh}T")
    await batch.play([(1, COMMIT, NONE, [done(1, 1)])])
    assert (await js.get_msg(f"{fresh}T", 1)).subject == f"{fresh}T.b"


async def test_where_nothing_is_acknowledged(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh, no_ack=True)
    batch = await begin(client, fresh)
    batch.flow = 2
    await batch.play(
        [
            (1, START, NONE, []),
            (2, APPEND, NONE, [flow(2, 2)]),
            (3, PING, NONE, [gap(3, 4), done(2, 2)]),
            (4, APPEND, NONE, []),
            (1, START, NONE, []),
            (2, COMMIT, NONE, [done(4, 2)]),
        ]
    )
    assert (await js.stream_info(fresh)).state.messages == 4


# In a cluster


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        yield running


@pytest.fixture
async def member(cluster: Cluster) -> AsyncIterator[Client]:
    """A connection to one of them."""
    made = await nats.connect(cluster.urls[0], connect_timeout=int(WAIT_S))
    yield made
    await made.close()


@pytest.mark.parametrize("case", SCRIPTS)
async def test_replicated_batches(member: Client, fresh: str, case: str) -> None:
    gaps, every, steps, count = SCRIPTS[case]
    await create(member, fresh, num_replicas=3)
    batch = await begin(member, fresh)
    batch.gaps, batch.flow = gaps, every
    await batch.play(steps)
    assert (await ask(member, f"STREAM.INFO.{fresh}"))["state"]["messages"] == count
    await ask(member, f"STREAM.DELETE.{fresh}")


@pytest.mark.parametrize("gaps", ["fail", "ok"])
async def test_a_new_leader_goes_on(member: Client, fresh: str, gaps: str) -> None:
    await create(member, fresh, num_replicas=3)
    batch = await begin(member, fresh)
    batch.gaps, batch.flow = gaps, 2
    stored = [
        (2, APPEND, NONE, [flow(2, 2)]),
        (3, APPEND, NONE, []),
        (4, APPEND, NONE, [flow(4, 2)]),
    ]
    await batch.play([(1, START, NONE, [flow(0, 2)]), *stored])
    before = (await ask(member, f"STREAM.INFO.{fresh}"))["cluster"]["leader"]
    await ask(member, f"STREAM.LEADER.STEPDOWN.{fresh}")

    async def moved() -> bool:
        leader = (await ask(member, f"STREAM.INFO.{fresh}")).get("cluster", {}).get("leader")
        return bool(leader not in (None, "", before))

    await eventually(moved, "another server to lead", WAIT_S)
    assert await batch.heard() == flow(4, 2), "who leads now tells that it is there"
    await batch.send(7, APPEND)
    assert await batch.heard() == gap(5, 7)
    if gaps == "fail":
        assert await batch.heard() == done(4, 4)
    else:
        assert await batch.heard() == flow(6, 2)
        await batch.send(8, COMMIT)
        assert await batch.heard() == done(6, 8)
