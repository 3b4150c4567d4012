"""Streams and consumers of many subjects: made and refused as nats-server does, and soon."""

import asyncio
import json
import time
from typing import Any

import pytest
from nats.aio.client import Client

ROUND_TRIP_S_MAX = 3.0
"""Where each subject is compared with each other one it is far more."""


async def ask(client: Client, subject: str, /, **body: Any) -> dict[str, Any]:
    """The decoded answer."""
    made = json.dumps(body, separators=(",", ":")).encode()
    answer = await client.request(f"$JS.API.{subject}", made, timeout=60)
    found: dict[str, Any] = json.loads(answer.data)
    return found


async def create(client: Client, name: str, subjects: list[str]) -> dict[str, Any]:
    return await ask(client, f"STREAM.CREATE.{name}", name=name, subjects=subjects)


async def worst_ping_s(client: Client, done: asyncio.Event) -> float:
    worst = 0.0
    while not done.is_set():
        began = time.perf_counter()
        await client.flush(timeout=60)
        worst = max(worst, time.perf_counter() - began)
    return worst


async def test_a_stream_of_4000_subjects_keeps_nobody_waiting(
    client: Client, other: Client, fresh: str
) -> None:
    done = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        pings = group.create_task(worst_ping_s(other, done))
        made = await create(client, fresh, [f"{fresh}.{n}.a" for n in range(4000)])
        again = await create(client, f"{fresh}2", [f"{fresh}.{n}.*" for n in range(3999, 8000)])
        done.set()
    assert "error" not in made
    assert again["error"]["err_code"] == 10065
    assert pings.result() < ROUND_TRIP_S_MAX
    await ask(client, f"STREAM.DELETE.{fresh}")


@pytest.mark.parametrize(
    ("subjects", "text"),
    [
        (["a", "b", "c.*", "b"], 'subject "b" overlaps with "b"'),
        (["a.b", "*.b", "a.*"], 'subject "a.b" overlaps with "*.b"'),
        (["x", "c.>", "y", "c.d.*"], 'subject "c.>" overlaps with "c.d.*"'),
        (["a.*", "a..b", "a.c"], 'subject "a.*" overlaps with "a.c"'),
        (["a", "b..c", "a.>", "a.b"], "invalid subject"),
        (["$SYS.x", "a", "a"], "subjects that overlap with system api require no-ack to be true"),
    ],
)
async def test_the_first_mistake_among_subjects_is_named(
    client: Client, fresh: str, subjects: list[str], text: str
) -> None:
    answer = await create(client, fresh, subjects)
    assert text in answer["error"]["description"]


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        (["f.a", "f.b", "f.*"], 10138),
        (["f.a", "f.a"], 10138),
        (["f.*.b", "f.a.*"], None),
        (["f.>", "f.a.b"], 10138),
        (["f.a.*", "f.*.*"], 10138),
        ([f"f.x.{n}" for n in range(3000)], None),
        ([f"f.*.{n}" for n in range(3000)] + ["f.y.2999"], 10138),
    ],
)
async def test_filters_that_overlap_are_refused(
    client: Client, fresh: str, filters: list[str], code: int | None
) -> None:
    await create(client, fresh, [f"{fresh}.>"])
    config = {"name": "c", "filter_subjects": [one.replace("f.", f"{fresh}.") for one in filters]}
    subject = f"CONSUMER.CREATE.{fresh}.c"
    answer = await ask(client, subject, stream_name=fresh, config=config)
    assert answer.get("error", {}).get("err_code") == code
    await ask(client, f"STREAM.DELETE.{fresh}")


@pytest.mark.parametrize(
    "body",
    ['{"multi_last":["a.*"],"batch":"a"}', '{"next_by_subj":1}', '{"seq":"1"}', '{"multi_last":1}'],
)
async def test_a_direct_get_with_wrong_types_is_refused(
    client: Client, fresh: str, body: str
) -> None:
    config = {"name": fresh, "subjects": [f"{fresh}.>"], "allow_direct": True}
    await ask(client, f"STREAM.CREATE.{fresh}", **config)
    answer = await client.request(f"$JS.API.DIRECT.GET.{fresh}", body.encode(), timeout=10)
    assert answer.headers is not None
    assert (answer.headers["Status"], answer.headers["Description"]) == ("408", "Malformed Request")
    await ask(client, f"STREAM.DELETE.{fresh}")
