"""Counters: what they are answered, what they store, and how they add up over sources."""

import json
from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.support.waiting import eventually

WAIT_S = 30.0
GOOGOL = "1" + "0" * 100
LONG = "9" * 5_000
Headers = dict[str, str]
Config = dict[str, Any]


async def ask(client: Client, subject: str, body: Config | None = None) -> Any:
    """The decoded answer of the API."""
    payload = b"" if body is None else json.dumps(body).encode()
    answer = await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)
    return json.loads(answer.data)


async def create(client: Client, name: str, **more: Any) -> Any:
    """A stream of counters, with everything below its name unless it has sources."""
    config: Config = {"name": name, "allow_msg_counter": True, "allow_direct": True}
    if "sources" not in more:
        config["subjects"] = [f"{name}.>"]
    made = await ask(client, f"STREAM.CREATE.{name}", {**config, **more})
    assert "error" not in made, made
    return made


async def publish(client: Client, subject: str, headers: Headers, payload: bytes = b"") -> Any:
    """An acknowledgement, or the code of an error."""
    reply = await client.request(subject, payload, timeout=WAIT_S, headers=headers or None)
    found = json.loads(reply.data)
    return found["error"]["err_code"] if "error" in found else found


async def add(client: Client, subject: str, number: int | str, **more: str) -> Any:
    """What a publisher is told that adds a number."""
    fields = {f"Nats-{key.replace('_', '-')}": value for key, value in more.items()}
    return await publish(client, subject, {"Nats-Incr": str(number), **fields})


async def last(js: JetStreamContext, name: str, subject: str) -> tuple[Any, Headers]:
    """Body and headers of the last message of a subject."""
    found = await js.get_last_msg(name, subject)
    return json.loads(found.data or b"null"), dict(found.headers or {})


@pytest.mark.parametrize("storage", ["file", "memory"])
async def test_each_subject_is_a_counter(
    client: Client, js: JetStreamContext, fresh: str, storage: str
) -> None:
    await create(client, fresh, storage=storage)
    steps = [
        ("a", "1", "1"),
        ("a", "+2", "3"),
        ("b", "-5", "-5"),
        ("a", "0", "3"),
        ("a", "-3", "0"),
        ("a", "-0", "0"),
        ("b", GOOGOL, str(int(GOOGOL) - 5)),
        ("b", f"-{GOOGOL}", "-5"),
        ("b", "007", "2"),
        ("c", LONG, LONG),
        ("c", "1", str("1" + "0" * 5_000)),
    ]
    for seq, (subject, increment, total) in enumerate(steps, 1):
        answer = await add(client, f"{fresh}.{subject}", increment)
        assert answer == {"stream": fresh, "seq": seq, "val": total}
        found = await js.get_msg(fresh, seq)
        assert found.data == b'{"val":"%b"}' % total.encode()
        assert found.headers == {"Nats-Incr": increment}


REFUSED: list[tuple[Headers, bytes, int]] = [
    ({}, b"", 10169),
    ({}, b"x", 10169),
    ({"Key": "value"}, b"", 10169),
    ({"Nats-Incr": ""}, b"", 10169),
    ({"Nats-Msg-Id": "i"}, b"", 10169),
    ({"Nats-Incr": "one"}, b"", 10171),
    ({"Nats-Incr": "1.5"}, b"", 10171),
    ({"Nats-Incr": "1 1"}, b"", 10171),
    ({"Nats-Incr": "+"}, b"", 10171),
    ({"Nats-Incr": "1_000"}, b"", 10171),
    ({"Nats-Incr": "0x10"}, b"", 10171),
    ({"Nats-Incr": "1"}, b"x", 10170),
    ({"Nats-Incr": "1", "Nats-Rollup": "sub"}, b"", 10171),
    ({"Nats-Incr": "1", "Nats-Rollup": "sub"}, b"x", 10170),
    ({"Nats-Incr": "1", "Nats-Expected-Stream": "X"}, b"", 10171),
    ({"Nats-Incr": "1", "Nats-Expected-Last-Sequence": "0"}, b"", 10171),
    ({"Nats-Incr": "1", "Nats-Expected-Last-Subject-Sequence": "0"}, b"", 10171),
    ({"Nats-Incr": "1", "Nats-Expected-Last-Subject-Sequence-Subject": "a"}, b"", 10171),
    ({"Nats-Incr": "1", "Nats-Expected-Last-Msg-Id": "x"}, b"", 10171),
    ({"Nats-Incr": "1", "Nats-TTL": "1s"}, b"", 10166),
    ({"Nats-Incr": "1", "Nats-Stream-Source": "S 1"}, b"", 10227),
    ({"Nats-Expected-Stream": "X"}, b"", 10060),
]


async def test_what_is_no_increment(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    found = [await publish(client, f"{fresh}.a", headers, body) for headers, body, _ in REFUSED]
    assert found == [code for _, _, code in REFUSED]
    assert (await js.stream_info(fresh)).state.last_seq == 0


async def test_an_id_counts_once(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    first = await add(client, f"{fresh}.a", 5, Msg_Id="i")
    again = await add(client, f"{fresh}.a", 5, Msg_Id="i")
    assert first == {"stream": fresh, "seq": 1, "val": "5"}
    assert again == {"stream": fresh, "seq": 1, "duplicate": True}
    assert (await add(client, f"{fresh}.a", 1))["val"] == "6"


async def test_many_at_once(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    answers = await client.subscribe(f"{client.new_inbox()}.*")
    for number in range(500):
        reply = f"{answers.subject[:-1]}{number}"
        await client.publish(f"{fresh}.{number % 3}", b"", reply, headers={"Nats-Incr": "2"})
    totals = [int(json.loads((await answers.next_msg(WAIT_S)).data)["val"]) for _ in range(500)]
    assert totals == [number // 3 * 2 + 2 for number in range(500)]


async def test_what_goes_away_is_not_counted_on(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh)
    for number in (1, 2, 3):
        await add(client, f"{fresh}.a", number)
    await js.delete_msg(fresh, 3)
    assert (await add(client, f"{fresh}.a", 10))["val"] == "13"
    await js.purge_stream(fresh, subject=f"{fresh}.a")
    assert (await add(client, f"{fresh}.a", 4))["val"] == "4"


async def test_limits_keep_the_total(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh, max_msgs_per_subject=1)
    for number in range(1, 5):
        await add(client, f"{fresh}.a", number)
    assert (await add(client, f"{fresh}.a", -10))["val"] == "0"
    assert (await js.stream_info(fresh)).state.messages == 1


async def test_sizes_are_those_of_what_is_stored(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh, max_msg_size=len("NATS/1.0\r\nNats-Incr: 1\r\n\r\n") + 11)
    assert (await add(client, f"{fresh}.a", 9))["val"] == "9"
    assert await add(client, f"{fresh}.a", 1) == 10054
    assert (await add(client, f"{fresh}.a", 0))["val"] == "9"


async def test_transforms_come_first(client: Client, js: JetStreamContext, fresh: str) -> None:
    transform = {"src": f"{fresh}.*.hits", "dest": f"{fresh}.hits"}
    await create(client, fresh, subject_transform=transform)
    assert (await add(client, f"{fresh}.de.hits", 2))["val"] == "2"
    assert (await add(client, f"{fresh}.es.hits", 3))["val"] == "5"
    assert (await js.get_msg(fresh, 2)).subject == f"{fresh}.hits"


FEATURES: list[tuple[Config, str]] = [
    ({"discard": "new"}, "counter stream cannot use discard new"),
    ({"allow_msg_ttl": True}, "counter stream cannot use message TTLs"),
    ({"allow_msg_schedules": True}, "counter stream cannot use message schedules"),
    ({"retention": "interest"}, "counter stream can only use limits retention"),
    ({"retention": "workqueue"}, "counter stream can only use limits retention"),
]


async def test_what_counters_cannot_be(client: Client, fresh: str) -> None:
    for more, text in FEATURES:
        config = {"name": fresh, "subjects": [fresh], "allow_msg_counter": True, **more}
        made = await ask(client, f"STREAM.CREATE.{fresh}", config)
        assert made["error"] == {"code": 500, "err_code": 10052, "description": text}
    made = await create(client, fresh)
    assert made["config"]["allow_msg_counter"] is True
    assert made["config"]["metadata"]["_nats.req.level"] == "2"
    changed = await ask(
        client, f"STREAM.UPDATE.{fresh}", {"name": fresh, "subjects": [f"{fresh}.>"]}
    )
    text = "stream configuration update can not change message counter setting"
    assert changed["error"]["description"] == text
    mirror = {"name": f"{fresh}M", "mirror": {"name": fresh}, "allow_msg_counter": True}
    made = await ask(client, f"STREAM.CREATE.{fresh}M", mirror)
    assert made["error"]["err_code"] == 10173


async def holds(js: JetStreamContext, name: str, subject: str, total: str) -> None:
    """Wait until a counter stands at a total."""

    async def there() -> bool:
        try:
            body, _ = await last(js, name, subject)
        except nats.js.errors.NotFoundError:
            return False
        return bool(body == {"val": total})

    await eventually(there, f"{subject} of {name} to be {total}", WAIT_S)


async def test_mirrors_and_plain_takers_store_what_comes(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    origin = f"{fresh}O"
    await create(client, origin)
    for name, more in (("M", {"mirror": {"name": origin}}), ("S", {"sources": [{"name": origin}]})):
        config = {"name": f"{fresh}{name}", **more}
        assert "error" not in await ask(client, f"STREAM.CREATE.{fresh}{name}", config)
    await add(client, f"{origin}.a", 3)
    await add(client, f"{origin}.a", 4, Msg_Id="i")
    for name in ("M", "S"):
        await holds(js, f"{fresh}{name}", f"{origin}.a", "7")
        _, headers = await last(js, f"{fresh}{name}", f"{origin}.a")
        headers.pop("Nats-Stream-Source", None)
        assert headers == {"Nats-Incr": "4", "Nats-Msg-Id": "i"}


def into(origin: str, subject: str) -> Config:
    """A source whose subjects all become one."""
    return {"name": origin, "subject_transforms": [{"src": f"{origin}.*", "dest": subject}]}


async def test_takers_add_up(client: Client, js: JetStreamContext, fresh: str) -> None:
    one, two, sum_, top = (f"{fresh}{letter}" for letter in "ABST")
    await create(client, one, max_msgs_per_subject=1)
    await create(client, two)
    for number in (1, 2, 3):
        await add(client, f"{one}.x", number)
    await create(client, sum_, sources=[into(one, sum_), into(two, sum_)], subjects=[sum_])
    await create(client, top, sources=[into(sum_, top)])
    await holds(js, sum_, sum_, "6")
    _, headers = await last(js, sum_, sum_)
    assert headers["Nats-Incr"] == "6", "what went before is in the first that comes"
    assert json.loads(headers["Nats-Counter-Sources"]) == {one: {f"{one}.x": "6"}}
    assert (await add(client, sum_, 100))["val"] == "106"
    _, headers = await last(js, sum_, sum_)
    assert headers == {
        "Nats-Incr": "100",
        "Nats-Counter-Sources": json.dumps({one: {f"{one}.x": "6"}}, separators=(",", ":")),
    }
    await add(client, f"{two}.y", -4)
    await holds(js, sum_, sum_, "102")
    await add(client, f"{two}.z", 5)
    await holds(js, sum_, sum_, "107")
    await add(client, f"{one}.x", 1)
    await holds(js, sum_, sum_, "108")
    _, headers = await last(js, sum_, sum_)
    assert headers["Nats-Incr"] == "1"
    assert json.loads(headers["Nats-Counter-Sources"]) == {
        one: {f"{one}.x": "7"},
        two: {f"{two}.y": "-4", f"{two}.z": "5"},
    }
    await js.purge_stream(two)
    await add(client, f"{two}.z", 2)
    await holds(js, sum_, sum_, "105")


async def test_sources_of_a_source_add_up(client: Client, js: JetStreamContext, fresh: str) -> None:
    low, middle, top = (f"{fresh}{letter}" for letter in "LMT")
    await create(client, low)
    await create(client, middle, sources=[{"name": low}])
    await create(client, top, sources=[{"name": middle}])
    for number in (5, 6):
        await add(client, f"{low}.a", number)
    for name in (middle, top):
        await holds(js, name, f"{low}.a", "11")
    _, headers = await last(js, top, f"{low}.a")
    assert json.loads(headers["Nats-Counter-Sources"]) == {middle: {f"{low}.a": "11"}}


async def test_batches_of_increments(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh, allow_atomic=True)

    async def part(seq: int, subject: str, increment: str, commit: str = "") -> Any:
        headers = {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": str(seq)}
        headers |= {"Nats-Incr": increment} if increment else {}
        headers |= {"Nats-Batch-Commit": commit} if commit else {}
        reply = await client.request(f"{fresh}.{subject}", timeout=WAIT_S, headers=headers)
        return json.loads(reply.data) if reply.data else None

    await add(client, f"{fresh}.a", 1)
    assert await part(1, "a", "2") is None
    assert await part(2, "b", "5") is None
    assert await part(3, "a", "3", "1") == {"stream": fresh, "seq": 4, "batch": "b", "count": 3}
    assert [(await js.get_msg(fresh, seq)).data for seq in (2, 3, 4)] == [
        b'{"val":"3"}',
        b'{"val":"5"}',
        b'{"val":"6"}',
    ]
    for increment, code in (("", 10169), ("x", 10171)):
        assert await part(1, "a", "2") is None
        assert (await part(2, "a", increment, "1"))["error"]["err_code"] == code
    assert (await add(client, f"{fresh}.a", 1))["val"] == "7"


async def test_a_counter_is_what_its_last_message_says(client: Client, fresh: str) -> None:
    await create(client, fresh)
    await add(client, f"{fresh}.a", 5, Counter_Sources='{"O": null}')
    assert (await add(client, f"{fresh}.a", 1))["val"] == "6"
    await add(client, f"{fresh}.b", 5, Counter_Sources="broken")
    assert await add(client, f"{fresh}.b", 1) == 10172


# In a cluster


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Any:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        yield running


@pytest.fixture
async def member(cluster: Cluster) -> AsyncIterator[Client]:
    """A connection to one of them."""
    made = await nats.connect(cluster.urls[0], connect_timeout=int(WAIT_S))
    yield made
    await made.close()


async def test_replicated_counters(member: Client, fresh: str) -> None:
    js = member.jetstream(timeout=30)
    await create(member, fresh, num_replicas=3)
    found = [await publish(member, f"{fresh}.a", headers, body) for headers, body, _ in REFUSED]
    assert found == [code for _, _, code in REFUSED]
    for seq, total in ((1, "5"), (2, "10")):
        answer = await add(member, f"{fresh}.a", 5)
        assert answer == {"stream": fresh, "seq": seq, "val": total}
    before = (await ask(member, f"STREAM.INFO.{fresh}"))["cluster"]["leader"]
    await ask(member, f"STREAM.LEADER.STEPDOWN.{fresh}")

    async def moved() -> bool:
        leader = (await ask(member, f"STREAM.INFO.{fresh}")).get("cluster", {}).get("leader")
        return bool(leader not in (None, "", before))

    await eventually(moved, "another server to lead", WAIT_S)
    assert (await add(member, f"{fresh}.a", 7))["val"] == "17"
    taker = f"{fresh}S"
    await create(member, taker, num_replicas=3, sources=[into(fresh, taker)])
    await holds(js, taker, taker, "17")


@pytest.mark.parametrize("kind", list(KINDS))
async def test_totals_are_no_longer_than_messages_may_be(kind: str, fresh: str) -> None:
    with KINDS[kind]("-js", name="short", config="max_payload: 1024") as broker:
        client = await nats.connect(broker.url, connect_timeout=int(WAIT_S))
        await create(client, fresh)
        assert (await add(client, f"{fresh}.a", "1"))["val"] == "1"
        assert await add(client, f"{fresh}.a", "1" * 500) == 10054
        assert (await add(client, f"{fresh}.a", "-2"))["val"] == "-1"
        await client.close()
