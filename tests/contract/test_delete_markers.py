"""What stands for a subject whose last message is over, and how long messages live beside it."""

import json
from functools import partial

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from tests.contract.test_stream_publishing import WAIT_S, Headers, answer
from tests.support.waiting import eventually


async def marked_stream(client: Client, name: str, per_subject: int) -> None:
    """A stream whose markers live for a minute."""
    config = {
        "name": name,
        "subjects": [f"{name}.>"],
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": 60_000_000_000,
        "max_msgs_per_subject": per_subject,
    }
    body = json.dumps(config).encode()
    made = await client.request(f"$JS.API.STREAM.CREATE.{name}", body, timeout=WAIT_S)
    assert "error" not in json.loads(made.data)


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


async def test_messages_of_batches_and_sources_live_as_long(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    short = {"Nats-TTL": "1s"}
    made = {"allow_msg_ttl": True, "subject_delete_marker_ttl": 60_000_000_000}
    origin = {"name": f"{fresh}O", "subjects": [f"{fresh}O.>"], "allow_msg_ttl": True}
    batches = {"name": f"{fresh}B", "subjects": [f"{fresh}B.>"], "allow_atomic": True, **made}
    copy = {"name": f"{fresh}C", "sources": [{"name": f"{fresh}O"}], **made}
    for config in (origin, batches, copy):
        body = json.dumps(config).encode()
        subject = f"$JS.API.STREAM.CREATE.{config['name']}"
        assert "error" not in json.loads((await client.request(subject, body, WAIT_S)).data)
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
