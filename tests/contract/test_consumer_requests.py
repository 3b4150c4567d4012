"""Requests that change a consumer: the answer, and whatever is asked next, show what they did."""

import json
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from tests.support.pulling import SECOND_NS, Puller
from tests.support.waiting import eventually

WAIT_S = 30.0
FAR = "2100-01-01T00:00:00Z"
PAST = "2020-01-01T00:00:00Z"
NEVER = "0001-01-01T00:00:00Z"
LEVEL = "_nats.req.level"
COUNT = 6

State = tuple[int, int, int, int, int, int]


async def api(client: Client, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The decoded answer of the JetStream API."""
    payload = b"" if body is None else json.dumps(body).encode()
    answer = await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)
    found: dict[str, Any] = json.loads(answer.data)
    return found


async def consumer(client: Client, js: JetStreamContext, name: str, **fields: Any) -> Puller:
    """A stream of some messages and a durable consumer `c`."""
    await js.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    for number in range(1, COUNT + 1):
        await js.publish(f"{name}.a", f"m{number}".encode())
    settings = {"ack_policy": AckPolicy.EXPLICIT, **fields}
    await js.add_consumer(name, ConsumerConfig(durable_name="c", **settings))
    return await Puller.open(client, name, "c")


def state(info: dict[str, Any]) -> State:
    """Delivered and floor (consumer's and stream's sequence), unacknowledged, still to come."""
    places = [info[one][key] for one in ("delivered", "ack_floor") for key in info["ack_floor"]]
    numbers = [place for place in places if isinstance(place, int)]
    first, second, third, fourth = numbers
    return first, second, third, fourth, info["num_ack_pending"], info["num_pending"]


@pytest.mark.parametrize(("asked", "first"), [(None, 2), (5, 5), (1, 1)])
async def test_a_reset_shows(
    client: Client, js: JetStreamContext, fresh: str, asked: int | None, first: int
) -> None:
    pull = await consumer(client, js, fresh)
    await pull.ask(batch=4, expires=SECOND_NS)
    messages = await pull.take(4)
    for message in (messages[0], messages[2]):
        await client.request(message.reply, b"+ACK", timeout=WAIT_S)
    body = None if asked is None else {"seq": asked}
    answer = await api(client, f"CONSUMER.RESET.{fresh}.c", body)
    after = await api(client, f"CONSUMER.INFO.{fresh}.c")
    assert answer["reset_seq"] == first
    expected = (0, first - 1, 0, first - 1, 0, COUNT - first + 1)
    assert (state(answer), state(after)) == (expected, expected)
    await pull.ask(batch=1, expires=SECOND_NS)
    message = await pull.next()
    assert (message.metadata.sequence.consumer, message.metadata.sequence.stream) == (1, first)


async def test_a_reset_goes_to_the_floor_that_was_told(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    """Acknowledgements that nobody waits for count as soon as they are told of."""
    pull = await consumer(client, js, fresh)
    for number in range(1, COUNT + 1):
        await pull.ask(batch=1, expires=SECOND_NS)
        message = await pull.next()
        assert message.metadata.sequence.stream == number
        await message.ack()

        async def told(number: int = number) -> bool:
            info = await api(client, f"CONSUMER.INFO.{fresh}.c")
            return bool(info["ack_floor"]["stream_seq"] == number)

        await eventually(told, "the acknowledgement counts")
        answer = await api(client, f"CONSUMER.RESET.{fresh}.c")
        assert answer["reset_seq"] == number + 1


@pytest.mark.parametrize("count", [1, 20])
async def test_a_pause_and_its_end_show(
    client: Client, js: JetStreamContext, fresh: str, count: int
) -> None:
    await consumer(client, js, fresh)
    for _ in range(count):
        answer = await api(client, f"CONSUMER.PAUSE.{fresh}.c", {"pause_until": FAR})
        assert (answer["paused"], answer["pause_until"]) == (True, FAR)
        assert answer["pause_remaining"] > SECOND_NS
        info = await api(client, f"CONSUMER.INFO.{fresh}.c")
        assert info["paused"] is True and info["config"]["pause_until"] == FAR
        answer = await api(client, f"CONSUMER.PAUSE.{fresh}.c")
        assert answer["paused"] is False and "pause_remaining" not in answer
        assert answer["pause_until"] == NEVER
        info = await api(client, f"CONSUMER.INFO.{fresh}.c")
        assert "paused" not in info and "pause_until" not in info["config"]


async def test_what_level_a_pause_needs(client: Client, js: JetStreamContext, fresh: str) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    levels: list[str] = []
    for number, until in enumerate((None, NEVER, PAST, FAR)):
        name = f"c{number}"
        config: dict[str, Any] = {"name": name, "durable_name": name, "ack_policy": "explicit"}
        if until is not None:
            config["pause_until"] = until
        made = await api(
            client,
            f"CONSUMER.CREATE.{fresh}.{name}",
            {"stream_name": fresh, "config": config},
        )
        levels.append(made["config"]["metadata"][LEVEL])
    for until in (FAR, NEVER):
        await api(client, f"CONSUMER.PAUSE.{fresh}.c0", {"pause_until": until})
        info = await api(client, f"CONSUMER.INFO.{fresh}.c0")
        levels.append(info["config"]["metadata"][LEVEL])
    await api(client, f"CONSUMER.PAUSE.{fresh}.c0", {"pause_until": FAR})
    changed = {"name": "c0", "durable_name": "c0", "ack_policy": "explicit", "description": "x"}
    made = await api(
        client, f"CONSUMER.CREATE.{fresh}.c0", {"stream_name": fresh, "config": changed}
    )
    levels.append(made["config"]["metadata"][LEVEL])
    assert levels == ["0", "0", "1", "1", "1", "0", "1"]


async def test_nobody_takes_acknowledgements_that_are_not_asked_for(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    pull = await consumer(client, js, fresh, ack_policy=AckPolicy.NONE)
    await pull.ask(batch=1, expires=SECOND_NS)
    message = await pull.next()
    with pytest.raises(NoRespondersError):
        await client.request(message.reply, b"+ACK", timeout=WAIT_S)


async def test_the_last_message_counts_even_if_it_is_gone(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    for subject in "aab":
        await js.publish(f"{fresh}.{subject}", b"m")
    await js.purge_stream(fresh, subject=f"{fresh}.b")
    starts: list[tuple[int, int]] = []
    for filters in ({}, {"filter_subject": f"{fresh}.a"}):
        config = {"name": "c", "ack_policy": "explicit", "deliver_policy": "last", **filters}
        body = {"stream_name": fresh, "config": config}
        made = await api(client, f"CONSUMER.CREATE.{fresh}.c", body)
        starts.append((made["delivered"]["stream_seq"], made["num_pending"]))
        await api(client, f"CONSUMER.DELETE.{fresh}.c")
    assert starts == [(2, 0), (1, 1)]


LATER = {"inactive_threshold": 60 * SECOND_NS}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, 10148),
        ({"filter_subject": "{}.a"}, 10148),
        (LATER, None),
        ({"durable_name": "c"}, None),
    ],
    ids=["ephemeral", "filtered", "own threshold", "durable"],
)
@pytest.mark.parametrize("limits", [False, True], ids=["", "limits of the stream"])
async def test_a_second_creation_by_name(
    client: Client, fresh: str, fields: dict[str, Any], code: int | None, limits: bool
) -> None:
    """Who creates an ephemeral consumer a second time is told, unless a threshold is given."""
    filled = {
        key: str(one).format(fresh) if "filter" in key else one for key, one in fields.items()
    }
    common = {"consumer_limits": LATER} if limits else {}
    made = {"name": fresh, "subjects": [f"{fresh}.>"], **common}
    assert "error" not in await api(client, f"STREAM.CREATE.{fresh}", made)
    subject = ".".join(
        ["CONSUMER.CREATE", fresh, "c", *filter(None, [filled.get("filter_subject")])]
    )
    config = {"name": "c", "ack_policy": "explicit", **filled}
    body = {"stream_name": fresh, "config": config, "action": "create"}
    first, second = [await api(client, subject, body) for _ in range(2)]
    assert "error" not in first
    assert second.get("error", {}).get("err_code") == (None if limits else code)
    again = await api(client, subject, body | {"action": "update"})
    assert again["config"] == first["config"]


async def test_the_config_has_a_name_only_if_somebody_gave_one(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    for asked, given in (({}, None), ({"deliver_subject": "x"}, None), ({"name": "c"}, "c")):
        body = {"stream_name": fresh, "config": {"ack_policy": "none", **asked}}
        made = await api(client, f"CONSUMER.CREATE.{fresh}", body)
        name = made["name"]
        info = await api(client, f"CONSUMER.INFO.{fresh}.{name}")
        listed = await api(client, f"CONSUMER.LIST.{fresh}")
        shown = [made, info, *(one for one in listed["consumers"] if one["name"] == name)]
        assert [one["config"].get("name") for one in shown] == [given] * 3
        # Who asks by the name that was made up gives it.
        again = await api(
            client, f"CONSUMER.CREATE.{fresh}.{name}", {**body, "config": made["config"]}
        )
        assert again["created"] == made["created"]
        assert again["config"]["name"] == name
