"""Headers of publishes: which values are none, which letters count, and what is told first."""

import json
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

WAIT_S = 30.0
HEADER_BYTES_MAX = 65_535
FEATURES = {"allow_msg_ttl": True, "allow_rollup_hdrs": True}
EMPTY = (
    *("Nats-Expected-Stream", "Nats-Expected-Last-Subject-Sequence-Subject", "Nats-Rollup"),
    *("Nats-TTL", "Nats-Msg-Id", "Nats-Expected-Last-Msg-Id", "Nats-Expected-Last-Sequence"),
)


async def made(client: Client, name: str, **fields: Any) -> None:
    """A stream of everything below its name."""
    body = {"name": name, "subjects": [f"{name}.>"], **fields}
    words = f"$JS.API.STREAM.CREATE.{name}", json.dumps(body).encode()
    reply = await client.request(*words, timeout=WAIT_S)
    assert "error" not in json.loads(reply.data)


async def said(client: Client, subject: str, headers: dict[str, str], body: bytes = b"x") -> Any:
    """The sequence of a message, or the code of its refusal."""
    reply = await client.request(subject, body, timeout=WAIT_S, headers=headers)
    found = json.loads(reply.data)
    return found["error"]["err_code"] if "error" in found else found["seq"]


@pytest.mark.parametrize("header", EMPTY)
async def test_an_empty_value_is_none(client: Client, fresh: str, header: str) -> None:
    await made(client, fresh)
    assert await said(client, f"{fresh}.a", {header: ""}) == 1
    assert await said(client, f"{fresh}.a", {header: ""}) == 2


async def test_letters_of_words(client: Client, js: JetStreamContext, fresh: str) -> None:
    await made(client, fresh, **FEATURES)
    assert await said(client, f"{fresh}.a", {"Nats-TTL": "NEVER"}) == 1
    assert await said(client, f"{fresh}.a", {}) == 2
    assert await said(client, f"{fresh}.b", {}) == 3
    assert await said(client, f"{fresh}.a", {"Nats-Rollup": "SUB"}) == 4
    assert (await js.stream_info(fresh)).state.messages == 2
    assert await said(client, f"{fresh}.c", {"Nats-Rollup": "All"}) == 5
    assert (await js.stream_info(fresh)).state.messages == 1
    assert await said(client, f"{fresh}.a", {"Nats-Rollup": "some"}) == 10111


async def test_an_empty_rollup_beside_others(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    """What is stored together is told apart."""
    await made(client, fresh, **FEATURES)
    for number in range(1, 4):
        assert await said(client, f"{fresh}.a", {}) == number
    for rollup in ("", "sub", "", ""):
        subject = f"{fresh}.b" if rollup else f"{fresh}.a"
        await client.publish(subject, b"x", headers={"Nats-Rollup": rollup})
    await client.flush()
    assert await said(client, f"{fresh}.c", {}) == 8
    assert (await js.stream_info(fresh)).state.messages == 8


async def test_how_long_headers_may_be(client: Client, fresh: str) -> None:
    await made(client, fresh)
    around = len(b"NATS/1.0\r\nA: \r\n\r\n")
    assert await said(client, f"{fresh}.a", {"A": "a" * (HEADER_BYTES_MAX - around)}) == 1
    assert await said(client, f"{fresh}.a", {"A": "a" * (HEADER_BYTES_MAX + 1 - around)}) == 10097
