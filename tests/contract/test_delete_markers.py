"""What stands for a subject whose last message is over, and how long messages live beside it."""

import json
from functools import partial
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from tests.contract.test_stream_publishing import WAIT_S, Headers, answer
from tests.support.waiting import eventually


async def made(client: Client, name: str, verb: str = "CREATE", **config: Any) -> None:
    """A stream with one replica is there, or changed."""
    body = json.dumps({"name": name, **config}).encode()
    said = await client.request(f"$JS.API.STREAM.{verb}.{name}", body, timeout=WAIT_S)
    assert "error" not in json.loads(said.data)


async def marked_stream(client: Client, name: str, per_subject: int) -> None:
    """A stream whose markers live for a minute."""
    config: dict[str, Any] = {
        "subjects": [f"{name}.>"],
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": 60_000_000_000,
        "max_msgs_per_subject": per_subject,
    }
    await made(client, name, **config)


@pytest.mark.parametrize(
    ("headers", "marked"),
    [
        ({"KV-Operation": "PURGE", "Nats-Rollup": "sub"}, False),
        ({"KV-Operation": "DEL"}, True),
        ({"Nats-Marker-Reason": "MaxAge"}, False),
        ({"Nats-Marker-Reason": ""}, True),
        ({"Other": "Nats-Marker-Reason KV-Operation: PURGE"}, True),
    ],
)
async def test_what_says_that_its_subject_is_empty_leaves_no_marker(
    client: Client, js: JetStreamContext, fresh: str, headers: Headers, marked: bool
) -> None:
    await marked_stream(client, fresh, per_subject=1)
    await answer(client, f"{fresh}.a", {"Nats-TTL": "1s", **headers})
    await answer(client, f"{fresh}.later", {"Nats-TTL": "1s"})

    async def has_marker(subject: str) -> bool:
        try:
            found = await js.get_last_msg(fresh, subject)
        except NotFoundError:
            return False
        return (found.seq or 0) > 2 and "Nats-Marker-Reason" in (found.headers or {})

    await eventually(lambda: has_marker(f"{fresh}.later"), "the marker of a plain message")
    assert await has_marker(f"{fresh}.a") is marked
    assert (await js.stream_info(fresh)).state.messages == 1 + marked


@pytest.mark.parametrize(
    ("published", "stored"),
    [("1s", "60"), ("59", "60"), ("1m", "1m"), ("1h", "1h"), ("never", "never"), ("", "")],
)
@pytest.mark.parametrize("per_subject", [-1, 1, 2])
async def test_messages_live_as_long_as_markers(
    client: Client,
    js: JetStreamContext,
    fresh: str,
    published: str,
    stored: str,
    per_subject: int,
) -> None:
    """Where there can be a marker beside a message of its subject."""
    await marked_stream(client, fresh, per_subject)
    await answer(client, f"{fresh}.a", {"A": "b", "Nats-TTL": published, "C": "d"})
    found = (await js.get_msg(fresh, 1)).headers or {}
    expected = published if per_subject == 1 else stored
    assert found == {"A": "b", "Nats-TTL": expected, "C": "d"}


@pytest.mark.parametrize("older", ["never", "1h", ""])
async def test_a_subject_with_an_older_message_has_no_marker(
    client: Client, js: JetStreamContext, fresh: str, older: str
) -> None:
    config: dict[str, Any] = {"allow_msg_ttl": True, "subject_delete_marker_ttl": 1_000_000_000}
    await made(client, fresh, subjects=[f"{fresh}.>"], **config)
    await answer(client, f"{fresh}.a", {"Nats-TTL": older} if older else {})
    await answer(client, f"{fresh}.a", {"Nats-TTL": "1s"})
    for _ in range(2):
        await answer(client, f"{fresh}.b", {"Nats-TTL": "1s"})

    async def only_one() -> bool:
        return (await js.stream_info(fresh)).state.messages == 1

    await eventually(only_one, "all are over but the oldest one")
    state = (await js.stream_info(fresh)).state
    assert (state.first_seq, state.last_seq) == (1, 5)


async def test_a_sealed_stream_gets_no_marker(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    """Its message may stay, as nats-server has it, or go: docs/differences.md."""
    markers: dict[str, Any] = {"allow_msg_ttl": True, "subject_delete_marker_ttl": 60_000_000_000}
    streams: dict[str, dict[str, Any]] = {
        f"{fresh}P": {"allow_msg_ttl": True},
        f"{fresh}M": markers,
    }
    for name, config in streams.items():
        config = {"subjects": [f"{name}.a"], "max_msgs_per_subject": 1, **config}
        await made(client, name, **config)
        await answer(client, f"{name}.a", {"Nats-TTL": "1s"})
        await made(client, name, "UPDATE", sealed=True, **config)
    await marked_stream(client, fresh, per_subject=1)
    await answer(client, f"{fresh}.a", {"Nats-TTL": "1s"})

    async def is_over(stream: str, seq: int) -> bool:
        return (await js.stream_info(stream)).state.first_seq == seq

    await eventually(partial(is_over, fresh, 2), "the marker of a stream that is not sealed")
    await eventually(partial(is_over, f"{fresh}P", 2), "a message without markers is over")
    assert (await js.stream_info(f"{fresh}M")).state.last_seq == 1


async def test_copies_let_go_of_what_a_marker_stands_for(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await marked_stream(client, fresh, per_subject=-1)
    copies: dict[str, dict[str, Any]] = {
        f"{fresh}M": {"mirror": {"name": fresh}},
        f"{fresh}S": {"sources": [{"name": fresh}]},
    }
    for name, config in copies.items():
        await made(client, name, allow_rollup_hdrs=True, **config)
        await made(client, f"{name}K", **config)  # Which does not roll up
    await answer(client, f"{fresh}.kept", {})
    for _ in range(2):
        await answer(client, f"{fresh}.a", {"Nats-TTL": "1s"})
    age = {"max_age": 1_000_000_000, "duplicate_window": 1_000_000_000}
    aged: dict[str, Any] = {
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": 60_000_000_000,
        **age,
    }
    await answer(client, f"{fresh}.kept", {"Nats-TTL": "never"})
    await made(client, fresh, "UPDATE", subjects=[f"{fresh}.>"], **aged)

    async def marked(name: str) -> bool:
        try:
            found = (await js.get_msg(name, 5)).headers or {}
        except NotFoundError:
            return False
        marker = {"Nats-Marker-Reason": "MaxAge", "Nats-TTL": "1m0s", "Nats-Rollup": "sub"}
        return {key: found.get(key) for key in marker} == marker

    for name in copies:
        for copy, count in ((name, 3), (f"{name}K", 5)):
            await eventually(partial(marked, copy), f"{copy} has the marker")
            assert (await js.stream_info(copy)).state.messages == count


async def test_messages_of_batches_and_sources_live_as_long(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    short = {"Nats-TTL": "1s"}
    marked: dict[str, Any] = {"allow_msg_ttl": True, "subject_delete_marker_ttl": 60_000_000_000}
    await made(client, f"{fresh}O", subjects=[f"{fresh}O.>"], allow_msg_ttl=True)
    await made(client, f"{fresh}B", subjects=[f"{fresh}B.>"], allow_atomic=True, **marked)
    await made(client, f"{fresh}C", sources=[{"name": f"{fresh}O"}], **marked)
    batch = {"Nats-Batch-Id": "u", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"}
    assert (await answer(client, f"{fresh}B.a", {**short, **batch}))["seq"] == 1
    assert (await answer(client, f"{fresh}O.a", {"Nats-TTL": "50s"}))["seq"] == 1

    async def lives(stream: str) -> str:
        try:
            found = await js.get_msg(stream, 1)
        except NotFoundError:
            return ""
        return str((found.headers or {})["Nats-TTL"])

    for stream in (f"{fresh}B", f"{fresh}C"):
        assert await eventually(partial(lives, stream), f"{stream} has it") == "60"
