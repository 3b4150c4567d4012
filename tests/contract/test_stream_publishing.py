"""Messages into streams: acknowledgements, duplicates, expectations, limits, removal, reading."""

import asyncio
import json
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import TimeoutError as Late
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NotFoundError

from jsctl.testing import Broker
from tests.support.waiting import eventually

WAIT_S = 30.0
DUPLICATE_WINDOW_S = 1.0
LARGE_BYTES = 500_000
BURST = 240
"""Messages in flight at once: 120 MB, which both servers have to take."""
BURST_WAIT_S = 30.0

Headers = dict[str, str]


async def stream(js: JetStreamContext, name: str, **fields: Any) -> None:
    """A stream of a fresh name that takes everything below it."""
    await js.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **fields))


async def fill(js: JetStreamContext, subject: str, count: int) -> None:
    for number in range(1, count + 1):
        await js.publish(subject, f"m{number}".encode())


async def answer(client: Client, subject: str, headers: Headers | None = None) -> dict[str, Any]:
    """The whole acknowledgement of one message, errors too."""
    reply = await client.request(subject, b"x", timeout=WAIT_S, headers=headers)
    found: dict[str, Any] = json.loads(reply.data)
    return found


async def refused(client: Client, subject: str, headers: Headers) -> tuple[int, str]:
    """Code and text of a refusal."""
    error = (await answer(client, subject, headers))["error"]
    return error["err_code"], error["description"]


async def kept(js: JetStreamContext, name: str) -> list[str]:
    """All payloads of a stream, read one by one."""
    state = (await js.stream_info(name)).state
    found: list[str] = []
    for seq in range(state.first_seq, state.last_seq + 1):
        try:
            message = await js.get_msg(name, seq)
        except NotFoundError:
            continue
        found.append((message.data or b"").decode())
    return found


@pytest.mark.parametrize("storage", [StorageType.FILE, StorageType.MEMORY])
async def test_sequences_count_up(js: JetStreamContext, fresh: str, storage: StorageType) -> None:
    await stream(js, fresh, storage=storage)
    acks = [await js.publish(f"{fresh}.a", b"x" * size) for size in (0, 1, 1000)]
    assert [(one.stream, one.seq, one.duplicate) for one in acks] == [
        (fresh, 1, None),
        (fresh, 2, None),
        (fresh, 3, None),
    ]
    state = (await js.stream_info(fresh)).state
    assert (state.messages, state.first_seq, state.last_seq) == (3, 1, 3)


async def test_sizes_are_counted_alike(js: JetStreamContext, fresh: str) -> None:
    name = f"{fresh:_<8}"
    await stream(js, name)
    await js.publish(f"{name}.a", b"12345")
    await js.publish(f"{name}.a", b"12345", headers={"A": "b"})
    head = len("NATS/1.0\r\nA: b\r\n\r\n")
    one = 30 + len(f"{name}.a") + 5
    assert (await js.stream_info(name)).state.bytes == one + (one + 4 + head)


async def test_many_at_once_are_all_kept_in_order(js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh)
    futures = [await js.publish_async(f"{fresh}.a", str(n).encode()) for n in range(500)]
    acks = await asyncio.gather(*futures)
    assert [one.seq for one in acks] == list(range(1, 501))
    assert await kept(js, fresh) == [str(n) for n in range(500)]


async def test_a_burst_waits_for_the_disk(
    broker: Broker, client: Client, js: JetStreamContext, fresh: str
) -> None:
    await stream(js, fresh)
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    await client.flush()
    publish = f"PUB {fresh}.a {inbox} {LARGE_BYTES}\r\n".encode() + b"x" * LARGE_BYTES + b"\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false}\r\n' + publish * BURST)
    acks = [json.loads((await answers.next_msg(BURST_WAIT_S)).data) for _ in range(BURST)]
    assert [ack["seq"] for ack in acks] == list(range(1, BURST + 1))
    writer.close()
    await js.delete_stream(fresh)


async def test_duplicates_are_told_and_forgotten_after_the_window(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await stream(js, fresh, duplicate_window=DUPLICATE_WINDOW_S)
    first = await answer(client, f"{fresh}.a", {"Nats-Msg-Id": "one"})
    again = await answer(client, f"{fresh}.b", {"Nats-Msg-Id": "one"})
    assert first == {"stream": fresh, "seq": 1}
    assert again == {"stream": fresh, "seq": 1, "duplicate": True}
    assert await answer(client, f"{fresh}.a", {"Nats-Msg-Id": "two"}) == {
        "stream": fresh,
        "seq": 2,
    }

    async def taken_again() -> bool:
        found = await answer(client, f"{fresh}.a", {"Nats-Msg-Id": "one"})
        return "duplicate" not in found

    await eventually(taken_again, "the window to pass")


EXPECTATIONS: dict[str, tuple[Headers, str]] = {
    "stream": ({"Nats-Expected-Stream": "other"}, "10060"),
    "sequence": ({"Nats-Expected-Last-Sequence": "7"}, "10071"),
    "subject sequence": ({"Nats-Expected-Last-Subject-Sequence": "7"}, "10071"),
    "no sequence": ({"Nats-Expected-Last-Sequence": "x"}, "10071"),
    "negative": ({"Nats-Expected-Last-Sequence": "-1"}, "10071"),
    "no subject sequence": ({"Nats-Expected-Last-Subject-Sequence": "1.0"}, "10071"),
    "message id": ({"Nats-Expected-Last-Msg-Id": "nope"}, "10070"),
    "rollup off": ({"Nats-Rollup": "all"}, "10111"),
}


@pytest.mark.parametrize("case", EXPECTATIONS)
async def test_what_is_expected_and_wrong(
    client: Client, js: JetStreamContext, fresh: str, case: str
) -> None:
    await stream(js, fresh)
    await js.publish(f"{fresh}.a", b"", headers={"Nats-Msg-Id": "one"})
    headers, code = EXPECTATIONS[case]
    found, text = await refused(client, f"{fresh}.a", headers)
    assert str(found) == code, text
    assert (await js.stream_info(fresh)).state.messages == 1


async def test_what_is_expected_and_right(client: Client, js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh)
    steps: list[Headers] = [
        {"Nats-Expected-Stream": fresh, "Nats-Msg-Id": "one"},
        {"Nats-Expected-Last-Msg-Id": "one"},
        {"Nats-Expected-Last-Sequence": "2"},
        {"Nats-Expected-Last-Subject-Sequence": "3"},
        {
            "Nats-Expected-Last-Subject-Sequence": "4",
            "Nats-Expected-Last-Subject-Sequence-Subject": f"{fresh}.*",
        },
    ]
    for number, headers in enumerate(steps, 1):
        assert await answer(client, f"{fresh}.a", headers) == {"stream": fresh, "seq": number}
    text = await refused(client, f"{fresh}.a", {"Nats-Expected-Last-Sequence": "2"})
    assert text == (10071, "wrong last sequence: 5")


async def test_rollups_leave_one(js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh, allow_rollup_hdrs=True)
    await fill(js, f"{fresh}.a", 2)
    await js.publish(f"{fresh}.b", b"b")
    await js.publish(f"{fresh}.a", b"a", headers={"Nats-Rollup": "sub"})
    assert await kept(js, fresh) == ["b", "a"]
    await js.publish(f"{fresh}.c", b"c", headers={"Nats-Rollup": "all"})
    assert await kept(js, fresh) == ["c"]


LIMITS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "messages": ({"max_msgs": 3}, ["m4", "m5", "m6"]),
    "per subject": ({"max_msgs_per_subject": 2}, ["m5", "m6"]),
}


@pytest.mark.parametrize("case", LIMITS)
async def test_old_ones_go_at_the_limit(js: JetStreamContext, fresh: str, case: str) -> None:
    fields, left = LIMITS[case]
    await stream(js, fresh, discard=DiscardPolicy.OLD, **fields)
    await fill(js, f"{fresh}.a", 6)
    assert await kept(js, fresh) == left


async def test_bytes_are_a_limit_too(js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh, discard=DiscardPolicy.OLD, max_bytes=400)
    for _ in range(20):
        await js.publish(f"{fresh}.a", b"x" * 50)
    state = (await js.stream_info(fresh)).state
    assert (state.messages, state.last_seq) == (400 // (state.bytes // state.messages), 20)
    assert state.bytes <= 400


NEW: dict[str, tuple[dict[str, Any], tuple[int, str]]] = {
    "messages": ({"max_msgs": 2}, (10077, "maximum messages exceeded")),
    "bytes": ({"max_bytes": 100}, (10077, "maximum bytes exceeded")),
    "per subject": (
        {"max_msgs_per_subject": 2, "max_msgs": 100, "discard_new_per_subject": True},
        (10077, "maximum messages per subject exceeded"),
    ),
}


@pytest.mark.parametrize("case", NEW)
async def test_new_ones_are_refused_at_the_limit(
    client: Client, js: JetStreamContext, fresh: str, case: str
) -> None:
    fields, error = NEW[case]
    await stream(js, fresh, discard=DiscardPolicy.NEW, **fields)
    found = [await answer(client, f"{fresh}.a") for _ in range(4)][-1]
    assert (found["error"]["err_code"], found["error"]["description"]) == error


async def test_a_message_over_the_size_limit(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await stream(js, fresh, max_msg_size=10)
    reply = await client.request(f"{fresh}.a", b"x" * 11, timeout=WAIT_S)
    error = json.loads(reply.data)["error"]
    assert (error["err_code"], error["description"]) == (
        10054,
        "message size exceeds maximum allowed",
    )


async def test_messages_grow_old(js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh, max_age=0.5, duplicate_window=0.5)
    await fill(js, f"{fresh}.a", 3)

    async def empty() -> bool:
        return (await js.stream_info(fresh)).state.messages == 0

    await eventually(empty, "all messages to expire")
    state = (await js.stream_info(fresh)).state
    assert (state.first_seq, state.last_seq) == (4, 3)


PURGES: dict[str, tuple[dict[str, Any], list[str], int]] = {
    "all": ({}, [], 6),
    "subject": ({"subject": "a"}, ["m1", "m2", "m3"], 3),
    "up to": ({"seq": 5}, ["m2", "m3"], 4),
    "keep": ({"keep": 2}, ["m2", "m3"], 4),
    "keep of subject": ({"subject": "a", "keep": 1}, ["m3", "m1", "m2", "m3"], 2),
    "up to of subject": ({"subject": "b", "seq": 5}, ["m1", "m2", "m3", "m2", "m3"], 1),
}


@pytest.mark.parametrize("case", PURGES)
async def test_purge(client: Client, js: JetStreamContext, fresh: str, case: str) -> None:
    await stream(js, fresh)
    await fill(js, f"{fresh}.a", 3)
    await fill(js, f"{fresh}.b", 3)
    request, left, removed = PURGES[case]
    body: dict[str, Any] = {key: value for key, value in request.items() if key != "subject"}
    if "subject" in request:
        body["filter"] = f"{fresh}.{request['subject']}"
    reply = await client.request(
        f"$JS.API.STREAM.PURGE.{fresh}", json.dumps(body).encode(), timeout=WAIT_S
    )
    assert json.loads(reply.data)["purged"] == removed
    assert await kept(js, fresh) == left
    assert (await js.publish(f"{fresh}.a", b"next")).seq == 7


async def test_one_message_is_deleted(js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh)
    await fill(js, f"{fresh}.a", 3)
    assert await js.delete_msg(fresh, 2)
    assert await kept(js, fresh) == ["m1", "m3"]
    with pytest.raises(APIError) as error:
        await js.delete_msg(fresh, 9)
    assert error.value.err_code == 10057
    assert (await js.stream_info(fresh)).state.num_deleted == 1


async def test_sealed_and_denied(client: Client, js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh, deny_delete=True, deny_purge=True)
    await fill(js, f"{fresh}.a", 1)
    with pytest.raises(APIError) as delete:
        await js.delete_msg(fresh, 1)
    with pytest.raises(APIError) as purge:
        await js.purge_stream(fresh)
    assert (delete.value.err_code, purge.value.err_code) == (10057, 10110)


async def direct(client: Client, name: str, request: dict[str, Any]) -> Msg:
    return await client.request(
        f"$JS.API.DIRECT.GET.{name}", json.dumps(request).encode(), timeout=WAIT_S
    )


async def test_direct_get(client: Client, js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh, allow_direct=True)
    await fill(js, f"{fresh}.a", 2)
    await js.publish(f"{fresh}.b", b"b", headers={"H": "v"})
    cases: list[tuple[dict[str, Any], bytes]] = [
        ({"seq": 1}, b"m1"),
        ({"last_by_subj": f"{fresh}.a"}, b"m2"),
        ({"last_by_subj": f"{fresh}.>"}, b"b"),
        ({"next_by_subj": f"{fresh}.b"}, b"b"),
        ({"seq": 2, "next_by_subj": f"{fresh}.a"}, b"m2"),
    ]
    for request, body in cases:
        assert (await direct(client, fresh, request)).data == body, request
    found = (await direct(client, fresh, {"seq": 3})).headers or {}
    assert found["H"] == "v"
    assert (found["Nats-Stream"], found["Nats-Subject"], found["Nats-Sequence"]) == (
        fresh,
        f"{fresh}.b",
        "3",
    )
    by_subject = await client.request(f"$JS.API.DIRECT.GET.{fresh}.{fresh}.a", timeout=WAIT_S)
    assert by_subject.data == b"m2"


async def test_a_subject_that_reads_as_a_pattern(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await stream(js, fresh, allow_direct=True)
    for last in ("a", "*", "b"):
        await client.request(f"{fresh}.{last}", last.encode(), timeout=WAIT_S)
    assert (await direct(client, fresh, {"last_by_subj": f"{fresh}.*"})).data == b"b"
    by_subject = await client.request(f"$JS.API.DIRECT.GET.{fresh}.{fresh}.*", timeout=WAIT_S)
    assert by_subject.data == b"b"
    assert (await direct(client, fresh, {"last_by_subj": f"{fresh}.a"})).data == b"a"


STATUSES: dict[str, tuple[dict[str, Any], str]] = {
    "no such sequence": ({"seq": 99}, "404 Message Not Found"),
    "no such subject": ({"last_by_subj": "nope"}, "404 Message Not Found"),
    "nothing asked": ({}, "408 Empty Request"),
    "too much asked": ({"seq": 1, "last_by_subj": "x"}, "408 Bad Request"),
}


@pytest.mark.parametrize("case", STATUSES)
async def test_direct_get_says_why_not(
    client: Client, js: JetStreamContext, fresh: str, case: str
) -> None:
    await stream(js, fresh, allow_direct=True)
    await fill(js, f"{fresh}.a", 1)
    request, status = STATUSES[case]
    headers = (await direct(client, fresh, request)).headers or {}
    assert f"{headers['Status']} {headers['Description']}" == status


async def test_interest_drops_what_nobody_wants(js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh, retention=RetentionPolicy.INTEREST)
    await fill(js, f"{fresh}.a", 3)
    assert (await js.stream_info(fresh)).state.messages == 0
    pull = await js.pull_subscribe(f"{fresh}.a", durable="d")
    await fill(js, f"{fresh}.a", 3)
    assert (await js.stream_info(fresh)).state.messages == 3
    for message in await pull.fetch(3, timeout=WAIT_S):
        await message.ack_sync()

    async def empty() -> bool:
        return (await js.stream_info(fresh)).state.messages == 0

    await eventually(empty, "acknowledged messages to go")


async def test_a_work_queue_has_one_reader(js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh, retention=RetentionPolicy.WORK_QUEUE)
    await fill(js, f"{fresh}.a", 3)
    pull = await js.pull_subscribe(f"{fresh}.a", durable="d")
    with pytest.raises(APIError) as error:
        await js.pull_subscribe(f"{fresh}.>", durable="e")
    assert error.value.err_code in (10099, 10100)
    for message in await pull.fetch(2, timeout=WAIT_S):
        await message.ack_sync()
    assert await kept(js, fresh) == ["m3"]


async def test_overlapping_streams_are_refused(js: JetStreamContext, fresh: str) -> None:
    await stream(js, fresh)
    with pytest.raises(APIError) as error:
        await js.add_stream(StreamConfig(name=f"{fresh}x", subjects=[f"{fresh}.a"]))
    assert (error.value.code, error.value.err_code) == (400, 10065)
    with pytest.raises(NotFoundError):
        await js.stream_info(f"{fresh}x")


async def test_no_stream_no_acknowledgement(client: Client, fresh: str) -> None:
    subscription = await client.subscribe(fresh)
    with pytest.raises(Late):
        await client.jetstream().publish(fresh, b"x", timeout=0.2)
    assert (await subscription.next_msg(timeout=WAIT_S)).data == b"x"


@pytest.mark.parametrize("storage", list(StorageType))
async def test_deleting_what_is_not_there(
    client: Client, js: JetStreamContext, fresh: str, storage: StorageType
) -> None:
    await stream(js, fresh, storage=storage)
    await fill(js, f"{fresh}.a", 5)
    for seq in (1, 3):
        await js.delete_msg(fresh, seq)
    codes: list[int] = []
    for seq in (0, 1, 3, 6, 9):
        body = json.dumps({"seq": seq}).encode()
        reply = await client.request(f"$JS.API.STREAM.MSG.DELETE.{fresh}", body, timeout=WAIT_S)
        codes.append(json.loads(reply.data)["error"]["err_code"])
    if storage is StorageType.MEMORY:
        assert codes == [10043] * 5
    else:
        assert codes == [10057, 10057, 10043, 10057, 10057]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sealed": True}, "stream configuration for create can not be sealed"),
        ({"mirror_direct": True}, "stream has no mirror but does have mirror direct"),
        ({}, "roll-ups require the purge permission"),
    ],
)
async def test_of_two_faults_the_first_one_is_told(
    client: Client, fresh: str, wrong: dict[str, bool], said: str
) -> None:
    """A stream that cannot be rolled up, as its messages cannot be purged."""
    config = {"name": fresh, "subjects": [f"{fresh}.>"], "storage": "file", "retention": "limits"}
    body = json.dumps({**config, "allow_rollup_hdrs": True, "deny_purge": True, **wrong})
    reply = await client.request(f"$JS.API.STREAM.CREATE.{fresh}", body.encode(), timeout=WAIT_S)
    assert json.loads(reply.data)["error"]["description"] == said
