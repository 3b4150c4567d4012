"""Streams that keep what somebody wants: what is remembered of messages that nobody does."""

import json
from typing import Any

import pytest
from nats.aio.client import Client

from tests.contract.test_atomic_batches import ask, publish


async def subjects(client: Client, name: str) -> dict[str, int]:
    """How many messages are there of each."""
    found = await ask(client, f"STREAM.INFO.{name}", {"subjects_filter": ">"})
    kept: dict[str, int] = found["state"].get("subjects", {})
    return {key.rpartition(".")[2]: count for key, count in kept.items()}


async def consume(client: Client, name: str, *wanted: str) -> None:
    """A consumer of these subjects, or of other ones from now on."""
    config = {"durable_name": "c", "ack_policy": "explicit"}
    body: dict[str, Any] = {"stream_name": name, "config": config}
    body["config"]["filter_subjects"] = [f"{name}.{one}" for one in wanted]
    made = await ask(client, f"CONSUMER.CREATE.{name}.c", body)
    assert "error" not in made, made


@pytest.fixture(params=["file", "memory"])
async def stream(request: pytest.FixtureRequest, client: Client, fresh: str) -> str:
    """One whose messages go when all consumers are done with them."""
    config = {"name": fresh, "subjects": [f"{fresh}.>"], "allow_rollup_hdrs": True}
    config |= {"retention": "interest", "storage": request.param}
    assert "error" not in await ask(client, f"STREAM.CREATE.{fresh}", config)
    return fresh


async def test_their_ids_are_known(client: Client, stream: str) -> None:
    first = await publish(client, f"{stream}.a", {"Nats-Msg-Id": "i"})
    again = await publish(client, f"{stream}.b", {"Nats-Msg-Id": "i"})
    assert (first["seq"], again["seq"], again["duplicate"]) == (1, 1, True)
    behind = await publish(client, f"{stream}.a", {"Nats-Expected-Last-Msg-Id": "i"})
    assert behind["seq"] == 2


@pytest.mark.parametrize(("rollup", "left"), [("all", {}), ("sub", {"a": 1})])
async def test_what_they_roll_up_is_gone(
    client: Client, stream: str, rollup: str, left: dict[str, int]
) -> None:
    await consume(client, stream, "a")
    await publish(client, f"{stream}.a", {})
    await publish(client, f"{stream}.b", {"Nats-Rollup": rollup})
    assert await subjects(client, stream) == left


async def test_what_a_consumer_wants_no_longer_goes(client: Client, stream: str) -> None:
    await consume(client, stream, "a", "b")
    for subject in "aba":
        await publish(client, f"{stream}.{subject}", {})
    await consume(client, stream, "a")
    assert await subjects(client, stream) == {"a": 2}


LEVELS = {"": True, "-1": True, "+5": True, "5": True, "6": False, "x": False, "1.0": False}


@pytest.mark.parametrize("level", LEVELS)
async def test_levels_that_requests_need(client: Client, fresh: str, level: str) -> None:
    config = {"name": fresh, "subjects": [f"{fresh}.>"], "allow_direct": True}
    await ask(client, f"STREAM.CREATE.{fresh}", config)
    await publish(client, f"{fresh}.a", {})
    headers = {"Nats-Required-Api-Level": level}
    info = await client.request(f"$JS.API.STREAM.INFO.{fresh}", headers=headers, timeout=30)
    error = json.loads(info.data).get("error", {}).get("err_code")
    assert error == (None if LEVELS[level] else 10185)
    for subject in (f"{fresh}.{fresh}.a", fresh):
        body = b"" if subject != fresh else b'{"seq":1}'
        asked = f"$JS.API.DIRECT.GET.{subject}"
        got = await client.request(asked, body, headers=headers, timeout=30)
        assert (got.headers or {}).get("Status") == (None if LEVELS[level] else "412")
