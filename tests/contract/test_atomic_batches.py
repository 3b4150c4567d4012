"""Atomic batches: what is answered, what is stored, and what refuses all of a batch."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from tests.support.publishing import answered_by_new
from tests.support.waiting import eventually

WAIT_S = 30.0
MANY = 1000
Headers = dict[str, str]
STAGED = ""
"""The answer to a message that waits for the rest of its batch."""
INCOMPLETE = (10176, "atomic publish batch is incomplete")
WRONG = (10164, "wrong last sequence")
DUPLICATE = (10201, "atomic publish batch contains duplicate message id")


async def ask(client: Client, subject: str, body: dict[str, Any] | None = None) -> Any:
    """The decoded answer of the API."""
    payload = b"" if body is None else json.dumps(body).encode()
    answer = await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)
    return json.loads(answer.data)


async def create(client: Client, name: str, **more: Any) -> None:
    """A stream that takes batches, and everything below its name."""
    config = {"name": name, "subjects": [f"{name}.>"], "storage": "file", "allow_atomic": True}
    made = await ask(client, f"STREAM.CREATE.{name}", {**config, **more})
    assert "error" not in made, made


async def publish(client: Client, subject: str, headers: Headers, payload: bytes = b"x") -> Any:
    """What is answered: nothing, an acknowledgement, or (code, text) of an error."""
    reply = await answered_by_new(client, subject, payload, headers)
    if not reply.data:
        return STAGED
    found = json.loads(reply.data)
    error = found.get("error")
    if error is None:
        return found
    assert (found["stream"], found["seq"]) == (subject.partition(".")[0], 0)
    return error["err_code"], error["description"]


def part(seq: int | str, commit: str | None = None, name: str = "b", **more: str | int) -> Headers:
    """The headers of a batch's message; words are joined by dashes."""
    made = {"Nats-Batch-Id": name, "Nats-Batch-Sequence": str(seq)}
    if commit is not None:
        made["Nats-Batch-Commit"] = commit
    return made | {f"Nats-{key.replace('_', '-')}": str(value) for key, value in more.items()}


async def send(
    client: Client, name: str, words: Sequence[tuple[str, dict[str, Any]]], commit: str = "1"
) -> Any:
    """A batch of messages given by (subject, headers); what its commit is answered."""
    for seq, (subject, more) in enumerate(words[:-1], 1):
        assert await publish(client, f"{name}.{subject}", part(seq, **more)) == STAGED
    subject, more = words[-1]
    return await publish(client, f"{name}.{subject}", part(len(words), commit, **more))


async def messages(js: JetStreamContext, name: str) -> list[tuple[int, str, str]]:
    """(sequence, subject, payload) of all that a stream holds."""
    state = (await js.stream_info(name)).state
    found: list[tuple[int, str, str]] = []
    for seq in range(max(state.first_seq, 1), state.last_seq + 1):
        try:
            message = await js.get_msg(name, seq)
        except NotFoundError:
            continue
        assert message.subject is not None
        found.append((seq, message.subject.partition(".")[2], (message.data or b"").decode()))
    assert len(found) == state.messages
    return found


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("commit", ["1", "eob"])
async def test_a_batch_is_stored_at_its_commit(
    client: Client, js: JetStreamContext, fresh: str, storage: str, commit: str
) -> None:
    await create(client, fresh, storage=storage)
    for seq in (1, 2, 3):
        answer = await publish(client, f"{fresh}.{seq}", part(seq), b"%d" % seq)
        assert answer == STAGED
        assert (await js.stream_info(fresh)).state.last_seq == 0
    answer = await publish(client, f"{fresh}.4", part(4, commit), b"4")
    count = 4 if commit == "1" else 3
    assert answer == {"stream": fresh, "seq": count, "batch": "b", "count": count}
    assert await messages(js, fresh) == [(n, str(n), str(n)) for n in range(1, count + 1)]
    for seq in range(1, count + 1):
        headers = (await js.get_msg(fresh, seq)).headers
        assert headers == part(seq, "1" if seq == count else None)


async def test_a_batch_of_one_and_of_many(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    answer = await publish(client, f"{fresh}.a", part(1, "1"))
    assert answer == {"stream": fresh, "seq": 1, "batch": "b", "count": 1}
    for seq in range(1, MANY):
        await client.publish(f"{fresh}.a", b"x", headers=part(seq))
    answer = await publish(client, f"{fresh}.a", part(MANY, "1"))
    assert answer == {"stream": fresh, "seq": MANY + 1, "batch": "b", "count": MANY}
    for seq in range(1, MANY + 1):
        await client.publish(f"{fresh}.a", b"x", headers=part(seq))
    answer = await publish(client, f"{fresh}.a", part(MANY + 1, "eob"))
    assert answer["count"] == MANY
    for seq in range(1, MANY + 1):
        await client.publish(f"{fresh}.a", b"x", headers=part(seq))
    too_large = (10199, f"atomic publish batch is too large: {MANY}")
    assert await publish(client, f"{fresh}.a", part(MANY + 1, "1")) == too_large
    assert await publish(client, f"{fresh}.a", part(MANY + 1, "1")) == too_large
    assert await publish(client, f"{fresh}.a", part(MANY + 1, "eob")) == INCOMPLETE
    assert (await js.stream_info(fresh)).state.messages == 2 * MANY + 1


async def test_batches_are_stored_in_the_order_of_their_commits(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh)
    for name in ("b", "c"):
        assert await publish(client, f"{fresh}.{name}", part(1, name=name)) == STAGED
    await js.publish(f"{fresh}.plain", b"")
    for name, seq in (("c", 3), ("b", 5)):
        answer = await publish(client, f"{fresh}.{name}", part(2, "1", name=name))
        assert (answer["seq"], answer["batch"], answer["count"]) == (seq, name, 2)
    subjects = [subject for _, subject, _ in await messages(js, fresh)]
    assert subjects == ["plain", "c", "c", "b", "b"]


REFUSED: dict[str, list[tuple[Headers, Any]]] = {
    "unknown": [(part(2), INCOMPLETE), (part(2, "1"), INCOMPLETE), (part(0), INCOMPLETE)],
    "a gap": [(part(1), STAGED), (part(3), INCOMPLETE), (part(2), INCOMPLETE)],
    "twice the same": [(part(1), STAGED), (part(1), INCOMPLETE), (part(2), INCOMPLETE)],
    "nothing but its end": [(part(1, "eob"), INCOMPLETE)],
    "no place": [({"Nats-Batch-Id": "b"}, (10175, "atomic publish sequence is missing"))],
    "no number": [(part("one"), (10175, "atomic publish sequence is missing"))],
    "negative": [(part(-1), (10175, "atomic publish sequence is missing"))],
    "a long name": [
        (part(1, name="n" * 65), (10179, "atomic publish batch ID is invalid")),
        (part(1, name="n" * 64), STAGED),
    ],
    "another commit": [
        (part(1), STAGED),
        (part(2, "2"), (10200, "atomic publish batch commit is invalid")),
        (part(2, "1"), INCOMPLETE),
    ],
    "an empty commit": [(part(1, ""), (10200, "atomic publish batch commit is invalid"))],
    "a level that nobody has": [
        (part(1), STAGED),
        (part(2, Required_Api_Level=99), (10185, "JetStream minimum api level required")),
        (part(2, "1"), INCOMPLETE),
    ],
    "no level": [
        (part(1, Required_Api_Level="x"), (10185, "JetStream minimum api level required"))
    ],
    "too far": [(part(MANY + 1), (10199, f"atomic publish batch is too large: {MANY}"))],
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_ends_a_batch(
    client: Client, js: JetStreamContext, fresh: str, case: str
) -> None:
    await create(client, fresh)
    for headers, answer in REFUSED[case]:
        assert await publish(client, f"{fresh}.a", headers) == answer, headers
    assert (await js.stream_info(fresh)).state.last_seq == 0


Batch = Sequence[tuple[str, dict[str, Any]]]
NOTHING: dict[str, Any] = {}
SUBJECT = {"Expected_Last_Subject_Sequence": 0}
OF_A = {"Expected_Last_Subject_Sequence_Subject": "NAME.a"}
LAST = {"Expected_Last_Sequence": 0}
TTL = {"TTL": "1h"}
SUB, ALL = {"Rollup": "sub"}, {"Rollup": "all"}
UNSUPPORTED = (10177, "atomic publish unsupported header used: Nats-Expected-Last-Msg-Id")
COMMITS: dict[str, tuple[dict[str, Any], Batch, Any]] = {
    "expected first": (NOTHING, [("a", LAST), ("b", NOTHING)], 2),
    "expected in the middle": (NOTHING, [("a", NOTHING), ("b", LAST)], (10071, "1")),
    "expected in the middle, and right": (
        NOTHING,
        [("a", NOTHING), ("b", {"Expected_Last_Sequence": 1})],
        WRONG,
    ),
    "expected and wrong": (NOTHING, [("a", {"Expected_Last_Sequence": 3})], (10071, "0")),
    "expected of subjects": (NOTHING, [("a", SUBJECT), ("b", SUBJECT)], 2),
    "expected of a subject twice": (NOTHING, [("a", SUBJECT), ("a", SUBJECT)], WRONG),
    "expected of another one": (NOTHING, [("b", {**SUBJECT, **OF_A}), ("c", SUBJECT)], 2),
    "expected of one twice": (NOTHING, [("b", {**SUBJECT, **OF_A}), ("c", {**SUBJECT, **OF_A})], 2),
    "expected of what the batch has": (
        NOTHING,
        [("a", NOTHING), ("b", {**SUBJECT, **OF_A})],
        WRONG,
    ),
    "expected of a subject and wrong": (
        NOTHING,
        [("a", {"Expected_Last_Subject_Sequence": 4})],
        (10071, "0"),
    ),
    "expected of a subject without a sequence": (NOTHING, [("a", OF_A)], (10193, "missing")),
    "expected of a pattern that the batch meets": (
        NOTHING,
        [("a", SUBJECT), ("b", {**SUBJECT, "Expected_Last_Subject_Sequence_Subject": "NAME.*"})],
        2,
    ),
    "expected id": (NOTHING, [("a", {"Expected_Last_Msg_Id": "i"}), ("a", NOTHING)], UNSUPPORTED),
    "another stream": (NOTHING, [("a", {"Expected_Stream": "X"})], (10060, "")),
    "this stream": (NOTHING, [("a", {"Expected_Stream": "NAME"})], 1),
    "ids": (NOTHING, [("a", {"Msg_Id": "1"}), ("a", {"Msg_Id": "2"})], 2),
    "an id twice": (NOTHING, [("a", {"Msg_Id": "1"}), ("a", {"Msg_Id": "1"})], DUPLICATE),
    "time to live, off": (NOTHING, [("a", NOTHING), ("a", TTL)], (10166, "")),
    "time to live": ({"allow_msg_ttl": True}, [("a", TTL), ("b", TTL)], 2),
    "no time to live": ({"allow_msg_ttl": True}, [("a", {"TTL": "x"})], (10165, "")),
    "an increment": (NOTHING, [("a", {"Incr": "1"})], (10168, "")),
    "no increment": (NOTHING, [("a", {"Incr": "x"})], (10171, "")),
    "a schedule": (NOTHING, [("a", {"Schedule": "@daily"})], (10188, "")),
    "a source": (NOTHING, [("a", {"Stream_Source": "S 1"})], (10227, "")),
    "rollups off": (NOTHING, [("a", SUB)], (10111, "rollup not permitted")),
    "rollups": ({"allow_rollup_hdrs": True}, [("a", SUB), ("b", SUB)], 2),
    "all first": ({"allow_rollup_hdrs": True}, [("a", ALL), ("b", NOTHING)], 2),
    "all later": (
        {"allow_rollup_hdrs": True},
        [("a", NOTHING), ("b", ALL)],
        (10111, "batch rollup all invalid"),
    ),
    "a subject again": (
        {"allow_rollup_hdrs": True},
        [("a", NOTHING), ("a", SUB)],
        (10111, "batch rollup sub invalid"),
    ),
    "no rollup": (
        {"allow_rollup_hdrs": True},
        [("a", {"Rollup": "x"})],
        (10111, 'rollup value invalid: "x"'),
    ),
    "room for all": ({"discard": "new", "max_msgs": 2}, [("a", NOTHING), ("b", NOTHING)], 2),
    "no room for all": (
        {"discard": "new", "max_msgs": 2},
        [("a", NOTHING), ("b", NOTHING), ("c", NOTHING)],
        (10077, "maximum messages exceeded"),
    ),
    "no room on a subject": (
        {"discard": "new", "discard_new_per_subject": True, "max_msgs_per_subject": 1},
        [("a", NOTHING), ("b", NOTHING), ("a", NOTHING)],
        (10077, "maximum messages per subject exceeded"),
    ),
    "no room for the bytes": (
        {"discard": "new", "max_bytes": 300},
        [("a", NOTHING)] * 5,
        (10077, "maximum bytes exceeded"),
    ),
    "the oldest go": ({"max_msgs": 2}, [("a", NOTHING)] * 5, 5),
    "the oldest of a subject go": (
        {"max_msgs_per_subject": 1},
        [("a", NOTHING), ("b", NOTHING)] * 2,
        4,
    ),
    "nobody is interested": ({"retention": "interest"}, [("a", NOTHING)] * 3, 3),
}


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("case", COMMITS)
async def test_a_batch_is_judged_as_a_whole(
    client: Client, js: JetStreamContext, fresh: str, case: str, storage: str
) -> None:
    config, batch, expected = COMMITS[case]
    await create(client, fresh, storage=storage, **config)
    named = json.loads(json.dumps(batch).replace("NAME", fresh))
    answer = await send(client, fresh, named)
    state = (await js.stream_info(fresh)).state
    if isinstance(expected, int):
        assert answer == {"stream": fresh, "seq": expected, "batch": "b", "count": expected}
        assert state.last_seq == expected
        again = await publish(client, f"{fresh}.a", part(2))
        assert again == INCOMPLETE
    else:
        code, text = answer
        assert code == expected[0] and expected[1] in text
        assert state.last_seq == state.messages == 0
        after = await send(client, fresh, [("z", NOTHING)])
        assert after["seq"] == 1, "sequences of what was refused are given again"


async def test_what_was_there_before(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh, allow_rollup_hdrs=True)
    for seq, subject in enumerate(("a", "b", "c"), 1):
        await js.publish(f"{fresh}.{subject}", headers={"Nats-Msg-Id": str(seq)})
    assert await send(client, fresh, [("d", {"Msg_Id": "2"}), ("e", NOTHING)]) == DUPLICATE
    pattern = {"Expected_Last_Subject_Sequence_Subject": f"{fresh}.*"}
    answer = await send(
        client,
        fresh,
        [
            ("a", {"Expected_Last_Sequence": 3, "Expected_Last_Subject_Sequence": 1, **SUB}),
            ("b", {"Expected_Last_Subject_Sequence": 3, **pattern}),
            ("x", {"Msg_Id": "9"}),
        ],
    )
    assert answer["seq"] == 6
    assert [subject for _, subject, _ in await messages(js, fresh)] == ["b", "c", "a", "b", "x"]
    again = await js.publish(f"{fresh}.x", headers={"Nats-Msg-Id": "9"})
    assert (again.seq, again.duplicate) == (6, True)
    last = await publish(client, f"{fresh}.a", {"Nats-Expected-Last-Msg-Id": "9"})
    assert last["seq"] == 7


async def test_levels_are_not_stored(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    answer = await publish(client, f"{fresh}.a", part(1, "1", Required_Api_Level=2, Msg_Id="i"))
    assert answer["seq"] == 1
    assert (await js.get_msg(fresh, 1)).headers == part(1, "1", Msg_Id="i")
    empty = part(1, "1", Required_Api_Level="")
    assert (await publish(client, f"{fresh}.a", empty))["seq"] == 2
    assert (await js.get_msg(fresh, 2)).headers == empty


async def test_too_many_at_once(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    for number in range(50):
        assert await publish(client, f"{fresh}.a", part(1, name=f"b{number}")) == STAGED
    many = (10210, "atomic publish too many inflight")
    assert await publish(client, f"{fresh}.a", part(1, name="more")) == many
    assert (await publish(client, f"{fresh}.a", part(2, "1", name="b7")))["count"] == 2
    assert await publish(client, f"{fresh}.a", part(1, name="more")) == STAGED
    await js.delete_stream(fresh)


async def test_no_answers_where_none_are_wanted(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh, no_ack=True)
    subscription = await client.subscribe(f"{client.new_inbox()}.>")
    reply = subscription.subject[:-1] + "x"
    for headers in (part(1), part(2, "1"), part(1), part(3)):
        await client.publish(f"{fresh}.a", b"x", reply=reply, headers=headers)

    async def stored() -> bool:
        return bool((await js.stream_info(fresh)).state.messages == 2)

    await eventually(stored, "the batch to be stored")
    assert subscription.pending_msgs == 0


async def test_transforms_come_before_what_is_expected(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    transform = {"src": f"{fresh}.in.*", "dest": f"{fresh}.out.{{{{wildcard(1)}}}}"}
    await create(client, fresh, subject_transform=transform)
    of_out = {"Expected_Last_Subject_Sequence_Subject": f"{fresh}.out.a"}
    answer = await send(client, fresh, [("in.a", NOTHING), ("in.b", {**SUBJECT, **of_out})])
    assert answer == WRONG
    answer = await send(client, fresh, [("in.a", SUBJECT), ("in.b", SUBJECT)])
    assert answer["seq"] == 2
    assert [subject for _, subject, _ in await messages(js, fresh)] == ["out.a", "out.b"]


async def test_batches_end_when_they_are_switched_off(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh)
    assert await publish(client, f"{fresh}.a", part(1)) == STAGED
    config = (await ask(client, f"STREAM.INFO.{fresh}"))["config"]
    assert config["allow_atomic"] is True
    del config["allow_atomic"]
    await ask(client, f"STREAM.UPDATE.{fresh}", config)
    off = (10174, "atomic publish is disabled")
    assert await publish(client, f"{fresh}.a", part(2, "1")) == off
    await ask(client, f"STREAM.UPDATE.{fresh}", {**config, "allow_atomic": True})
    assert await publish(client, f"{fresh}.a", part(2, "1")) == INCOMPLETE


async def test_operators_are_told_what_was_given_up(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh)
    advisories = await client.subscribe(f"$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.{fresh}")
    await client.flush()
    for headers in (part(1, name="gap"), part(3, name="gap"), part(9, name="unknown")):
        await publish(client, f"{fresh}.a", headers)
    await publish(client, f"{fresh}.a", part(1, name="level", Required_Api_Level=99))
    for seq in range(1, MANY + 2):
        await client.publish(f"{fresh}.a", b"x", headers=part(seq, name="large"))
    await publish(client, f"{fresh}.a", part(1, "x", name="commit"))
    await publish(client, f"{fresh}.a", part(1, "1", name="duplicate", Expected_Stream="X"))
    await publish(client, f"{fresh}.a", part(1, name="slow"))
    told = [json.loads((await advisories.next_msg(WAIT_S)).data) for _ in range(4)]
    for one in told:
        assert one.pop("type") == "io.nats.jetstream.advisory.v1.stream_batch_abandoned"
        assert one.pop("id") and one.pop("timestamp").endswith("Z")
    assert told == [
        {"stream": fresh, "batch": name, "reason": reason}
        for name, reason in (
            ("gap", "incomplete"),
            ("level", "unsupported"),
            ("large", "large"),
            ("slow", "timeout"),
        )
    ]


async def test_mirrors_and_sources_take_the_messages_alone(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    origin, mirror, taker = (f"{fresh}{letter}" for letter in "OMS")
    await create(client, origin)
    for name, more in (
        (mirror, {"mirror": {"name": origin}}),
        (taker, {"sources": [{"name": origin}]}),
    ):
        config: dict[str, Any] = {"name": name, **more}
        config = {**config, "allow_atomic": name == taker}
        assert "error" not in await ask(client, f"STREAM.CREATE.{name}", config)
    refused = await ask(
        client,
        f"STREAM.CREATE.{fresh}X",
        {"name": f"{fresh}X", "mirror": {"name": origin}, "allow_atomic": True},
    )
    assert refused["error"]["err_code"] == 10198
    await send(client, origin, [("a", {**LAST, "Msg_Id": "i"}), ("b", NOTHING)])

    for name in (mirror, taker):

        async def there(name: str = name) -> bool:
            return bool((await js.stream_info(name)).state.messages == 2)

        await eventually(there, f"{name} to have the batch", WAIT_S)
        headers = (await js.get_msg(name, 1)).headers or {}
        assert set(headers) - {"Nats-Stream-Source"} == {"Nats-Msg-Id"}
