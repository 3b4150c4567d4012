"""Mirrors and sources of streams: what is refused, what they hold, what is told of them."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.waiting import eventually

WAIT_S = 30.0
ACCOUNTS = """
accounts {
  JS {
    jetstream: enabled, users: [ {user: js, password: p} ]
    exports: [
      {service: "$JS.API.CONSUMER.>"}, {service: "$JS.FC.>"}, {stream: "deliver.>"}
    ]
  }
  IM {
    jetstream: enabled, users: [ {user: im, password: p} ]
    imports: [
      {service: {account: JS, subject: "$JS.API.CONSUMER.>"}, to: "other.api.CONSUMER.>"}
      {service: {account: JS, subject: "$JS.FC.>"}}
      {stream: {account: JS, subject: "deliver.>"}}
    ]
  }
}
"""
Config = dict[str, Any]


async def ask(client: Client, subject: str, body: Config | None = None) -> Any:
    """The decoded answer of the API."""
    payload = b"" if body is None else json.dumps(body).encode()
    answer = await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)
    return json.loads(answer.data)


async def create(client: Client, name: str, **more: Any) -> Any:
    return await ask(client, f"STREAM.CREATE.{name}", {"name": name, **more})


async def info(client: Client, name: str) -> Any:
    return await ask(client, f"STREAM.INFO.{name}")


async def holds(client: Client, name: str, count: int) -> None:
    """Wait until a stream has so many messages."""

    async def there() -> bool:
        return bool((await info(client, name))["state"]["messages"] == count)

    await eventually(there, f"{name} has {count} messages", WAIT_S)


SOURCE = {"name": "O"}
TRANSFORM = {"src": "a.*", "dest": "b.*"}
REFUSED: list[tuple[Config, int]] = [
    ({"mirror": SOURCE, "subjects": ["x"]}, 10034),
    ({"mirror": SOURCE, "sources": [SOURCE]}, 10031),
    ({"mirror": SOURCE, "first_seq": 5}, 10143),
    ({"mirror": SOURCE, "allow_msg_counter": True}, 10173),
    ({"mirror": SOURCE, "subject_delete_marker_ttl": 10**9}, 10052),
    ({"mirror": {"name": "O.x"}}, 10142),
    ({"mirror": {"name": ""}}, 10142),
    ({"mirror": {**SOURCE, "filter_subject": "a", "subject_transforms": [TRANSFORM]}}, 10150),
    ({"mirror": {**SOURCE, "subject_transforms": [TRANSFORM]}}, 10154),
    ({"mirror": {**SOURCE, "subject_transforms": [{"src": "a..b", "dest": "b"}]}}, 10151),
    (
        {
            "mirror": {
                **SOURCE,
                "subject_transforms": [{"src": "a.>", "dest": ""}, {"src": "a.b", "dest": ""}],
            }
        },
        10152,
    ),
    ({"mirror": {"name": "NAME"}}, 10052),
    ({"mirror": {**SOURCE, "consumer": {"name": "a.b", "deliver_subject": "d"}}}, 10213),
    ({"mirror": {**SOURCE, "external": {"api": "$JS.API", "deliver": "d"}}}, 10021),
    ({"mirror": {**SOURCE, "external": {"api": "A.*", "deliver": "d"}}}, 10052),
    ({"mirror": {**SOURCE, "external": {"api": "A", "deliver": "d.*"}}}, 10024),
    ({"mirror_direct": True}, 10052),
    ({"mirror": {**SOURCE, "filter_subject": "a b"}}, 10049),
    ({"sources": [{**SOURCE, "filter_subject": "a..b"}]}, 10049),
    ({"sources": [{"name": "O.x"}]}, 10141),
    ({"sources": [SOURCE, SOURCE]}, 10140),
    ({"sources": [{**SOURCE, "filter_subject": "a", "subject_transforms": [TRANSFORM]}]}, 10144),
    ({"sources": [{**SOURCE, "subject_transforms": [{"src": "a b", "dest": "b"}]}]}, 10145),
    ({"sources": [{**SOURCE, "subject_transforms": [TRANSFORM]}]}, 10146),
    (
        {
            "sources": [
                {
                    **SOURCE,
                    "subject_transforms": [{"src": "a", "dest": ""}, {"src": "a", "dest": "c"}],
                }
            ]
        },
        10147,
    ),
    ({"sources": [{"name": "NAME"}], "subjects": ["cycle"]}, 10052),
    ({"sources": [{**SOURCE, "consumer": {"name": "c", "deliver_subject": "d.*"}}]}, 10215),
    (
        {
            "sources": [
                {**SOURCE, "consumer": {"name": "c", "deliver_subject": "d"}},
                {
                    **SOURCE,
                    "consumer": {"name": "c", "deliver_subject": "e"},
                    "subject_transforms": [{"src": "a", "dest": "c"}],
                },
            ]
        },
        10216,
    ),
]


@pytest.mark.parametrize(("more", "code"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
async def test_what_cannot_be_declared(client: Client, fresh: str, more: Config, code: int) -> None:
    text = json.dumps(more).replace("NAME", fresh)
    answer = await create(client, fresh, **json.loads(text))
    assert answer["error"]["err_code"] == code, answer["error"]


async def test_sizes_and_circles_are_seen_over_other_streams(client: Client, fresh: str) -> None:
    a, b, c = (f"{fresh}{letter}" for letter in "ABC")
    await create(client, a, subjects=[a], max_msg_size=100, sources=[{"name": c}])
    too_small = await create(client, b, mirror={"name": a}, max_msg_size=50)
    assert too_small["error"]["err_code"] == 10030
    too_small = await create(client, b, sources=[{"name": a}], max_msg_size=50)
    assert too_small["error"]["err_code"] == 10046
    assert "error" not in await create(client, b, sources=[{"name": a}])
    circle = await create(client, c, sources=[{"name": b}])
    assert circle["error"]["description"] == "detected cycle"
    circle = await create(client, c, mirror={"name": b})
    assert circle["error"]["description"] == "detected cycle"


async def test_a_mirror_is_its_origin(client: Client, js: JetStreamContext, fresh: str) -> None:
    origin, mirror = f"{fresh}O", f"{fresh}M"
    await create(client, origin, subjects=[f"{fresh}.>"], allow_direct=True)
    for number in range(1, 6):
        await js.publish(f"{fresh}.{number}", b"%d" % number, headers={"Nats-Msg-Id": str(number)})
    await js.delete_msg(origin, 2)
    made = await create(client, mirror, mirror={"name": origin})
    assert made["config"]["mirror_direct"]
    assert "duplicate_window" not in made["config"]
    await holds(client, mirror, 4)
    for seq in (1, 3, 5):
        asked = [
            await ask(client, f"STREAM.MSG.GET.{one}", {"seq": seq}) for one in (origin, mirror)
        ]
        assert asked[0]["message"] == asked[1]["message"]
    told = await info(client, mirror)
    assert told["state"]["num_deleted"] == 1
    assert {key: told["mirror"][key] for key in ("name", "lag")} == {"name": origin, "lag": 0}
    assert told["mirror"]["active"] >= 0
    assert (await info(client, origin))["state"]["consumer_count"] == 0
    assert (await ask(client, f"CONSUMER.NAMES.{origin}"))["consumers"] in ([], None)
    changed = {"name": mirror, "mirror": {"name": origin, "filter_subject": "x"}}
    refused = await ask(client, f"STREAM.UPDATE.{mirror}", changed)
    assert refused["error"]["err_code"] == 10055
    promoted = {"name": mirror, "subjects": [f"{fresh}-m"], "allow_direct": True}
    assert "error" not in await ask(client, f"STREAM.UPDATE.{mirror}", promoted)
    assert (await js.publish(f"{fresh}-m", b"own")).seq == 6


async def test_a_mirror_of_a_purged_stream_begins_there(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    origin, mirror = f"{fresh}O", f"{fresh}M"
    await create(client, origin, subjects=[fresh])
    for _ in range(5):
        await js.publish(fresh, b"x")
    await js.purge_stream(origin)
    await create(client, mirror, mirror={"name": origin})

    async def begun() -> bool:
        return bool((await info(client, mirror))["state"]["last_seq"] == 5)

    await eventually(begun, "the mirror begins behind what was purged", WAIT_S)
    state = (await info(client, mirror))["state"]
    assert (state["messages"], state["first_seq"]) == (0, 6)


async def test_sources_tell_where_from(client: Client, js: JetStreamContext, fresh: str) -> None:
    origin, aggregate = f"{fresh}O", f"{fresh}S"
    await create(client, origin, subjects=[f"{fresh}.>"])
    for number in range(1, 4):
        await js.publish(f"{fresh}.{number}", b"x")
    sources: list[Config] = [
        {"name": origin, "filter_subject": f"{fresh}.1"},
        {"name": origin, "subject_transforms": [{"src": f"{fresh}.3", "dest": f"{fresh}-t"}]},
    ]
    made = await create(client, aggregate, sources=sources)
    assert "error" not in made
    await holds(client, aggregate, 2)
    headers = {}
    for seq in (1, 2):
        found = await js.get_msg(aggregate, seq)
        assert found.headers is not None
        *told, identity = found.headers["Nats-Stream-Source"].split(" ")
        assert len(identity) == 8
        headers[found.subject] = " ".join(told)
    assert headers == {
        f"{fresh}.1": f"{origin} 1 {fresh}.1 > {fresh}.1",
        f"{fresh}-t": f"{origin} 3 {fresh}.3 {fresh}-t {fresh}.3",
    }
    told_of = (await info(client, aggregate))["sources"]
    shown = [{k: v for k, v in one.items() if k != "active"} for one in told_of]
    for one in (
        {"name": origin, "lag": 0, "seq": 1, "filter_subject": f"{fresh}.1"},
        {
            "name": origin,
            "lag": 0,
            "seq": 3,
            "subject_transforms": sources[1]["subject_transforms"],
        },
    ):
        assert one in shown


async def test_an_origin_that_is_not_there(client: Client, fresh: str) -> None:
    await create(client, fresh, mirror={"name": f"{fresh}NONE"})

    async def told() -> bool:
        return "error" in (await info(client, fresh))["mirror"]

    await eventually(told, "the mirror tells why it stands still", WAIT_S)
    found = (await info(client, fresh))["mirror"]
    assert (found["error"]["err_code"], found["active"]) == (10059, -1)


async def test_a_bucket_is_read_over_its_mirror_too(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    bucket = await js.create_key_value(bucket=fresh, direct=True)
    await bucket.put("key", b"value")
    made = await create(client, f"{fresh}M", mirror={"name": f"KV_{fresh}"}, allow_direct=True)
    assert made["config"]["mirror_direct"]
    await holds(client, f"{fresh}M", 1)
    answered = set()

    async def both() -> bool:
        answer = await client.request(
            f"$JS.API.DIRECT.GET.KV_{fresh}", b'{"seq":1}', timeout=WAIT_S
        )
        assert answer.headers is not None and answer.data == b"value"
        answered.add(answer.headers["Nats-Stream"])
        return len(answered) == 2

    await eventually(both, "origin and mirror answer", WAIT_S)
    for _ in range(20):
        entry = await bucket.get("key")
        assert entry.value == b"value"


# Another account


@pytest.fixture(scope="module", params=list(KINDS))
def accounts(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """IM imports the API of JS, and what JS delivers."""
    with KINDS[str(request.param)]("-js", config=ACCOUNTS, name="one") as running:
        yield running


@pytest.fixture
async def exporter(accounts: Broker) -> AsyncIterator[Client]:
    client = await nats.connect(accounts.url.replace("//", "//js:p@"), connect_timeout=WAIT_S)
    yield client
    await client.close()


@pytest.fixture
async def importer(accounts: Broker) -> AsyncIterator[Client]:
    client = await nats.connect(accounts.url.replace("//", "//im:p@"), connect_timeout=WAIT_S)
    yield client
    await client.close()


@pytest.mark.parametrize("kind", ["mirror", "sources"])
async def test_an_origin_in_another_account(exporter: Client, importer: Client, kind: str) -> None:
    name = f"O{kind}"
    await create(exporter, name, subjects=[f"{kind}.>"])
    js = exporter.jetstream(timeout=WAIT_S)
    payload = b"x" * 100_000
    for number in range(60):
        await js.publish(f"{kind}.{number}", payload)
    origin = {"name": name, "external": {"api": "other.api", "deliver": "deliver.to"}}
    declared: Config = {"mirror": origin} if kind == "mirror" else {"sources": [origin]}
    made = await create(importer, f"{name}-COPY", **declared)
    assert "error" not in made
    await holds(importer, f"{name}-COPY", 60)
    told = await info(importer, f"{name}-COPY")
    shown = told["mirror"] if kind == "mirror" else told["sources"][0]
    assert shown["external"] == origin["external"]
    await js.publish(f"{kind}.more", b"x")
    await holds(importer, f"{name}-COPY", 61)
    if kind == "sources":
        found = await importer.jetstream().get_msg(f"{name}-COPY", 1)
        assert found.headers is not None
        assert found.headers["Nats-Stream-Source"].startswith(f"{name}:en3nYlWg 1 > > sources.0")
