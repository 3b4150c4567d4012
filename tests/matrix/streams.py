"""Features of streams: each is made, and used in rounds that count what came before."""

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from nats.errors import Error

from tests.matrix.place import SECOND, TRY_S, WAIT_S, Config, Place
from tests.support.fast_publishing import APPEND, COMMIT, START, Batch
from tests.support.waiting import eventually


async def plain(place: Place) -> None:
    """A stream and nothing else."""
    await place.stream()


async def mirror(place: Place) -> None:
    """A stream and one that mirrors it."""
    await place.stream()
    await place.stream("_M", mirror={"name": place.name})


async def use_mirror(place: Place) -> None:
    """What is stored is there, too."""
    for token in "abc":
        await place.put(token, place.word)
    await place.holds(3 * place.rounds, f"{place.name}_M")
    assert (await place.last(place.subject("c"), f"{place.name}_M")) is not None


async def sources(place: Place) -> None:
    """Two streams, of one a part, in a third."""
    await place.stream("_1")
    await place.stream("_2")
    filtered = {"name": f"{place.name}_2", "filter_subject": f"{place.name}_2.a"}
    await place.stream(sources=[{"name": f"{place.name}_1"}, filtered])


async def use_sources(place: Place) -> None:
    """All of one and a part of the other."""
    for number in "12":
        for token in "ab":
            await place.put_to(f"{place.name}_{number}.{token}", place.word)
    await place.holds(3 * place.rounds)
    body = {"last_by_subj": f"{place.name}_2.a"}
    found = await place.done(f"STREAM.MSG.GET.{place.name}", body)
    assert "hdrs" in found["message"], "it says where it comes from"


async def external(place: Place) -> None:
    """A mirror through the prefix of the domain."""
    await place.stream()
    origin = {"name": place.name, "external": {"api": "$JS.D.API", "deliver": ""}}
    await place.stream("_M", mirror=origin)


async def transform(place: Place) -> None:
    """Subjects are changed before messages are stored."""
    name = place.name
    moved = {"src": f"{name}.*", "dest": f"{name}.moved.{{{{wildcard(1)}}}}"}
    await place.stream(subject_transform=moved)


async def use_transform(place: Place) -> None:
    """It is stored under the other subject."""
    await place.put("a", place.word)
    found = await place.last(place.subject("moved.a"))
    assert found is not None
    await place.holds(place.rounds)


async def republish(place: Place) -> None:
    """What is stored is published once more."""
    await place.stream(republish={"src": ">", "dest": "again.>"})


async def use_republish(place: Place) -> None:
    """Somebody hears it."""
    heard = await place.client.subscribe(f"again.{place.name}.a")

    async def told() -> bool:
        await place.put("a", f"{place.word} {place.client.new_inbox()}")
        with suppress(Error):
            return ((await heard.next_msg(1.0)).headers or {})["Nats-Stream"] == place.name
        return False

    await eventually(told, "it is published again", WAIT_S)
    await heard.unsubscribe()


async def rollups(place: Place) -> None:
    """Messages may take the place of those before."""
    await place.stream(allow_rollup_hdrs=True)


async def use_rollups(place: Place) -> None:
    """One is left."""
    for number in range(3):
        await place.put("a", f"{place.word} {number}")
    await place.put("a", f"{place.word} all", {"Nats-Rollup": "sub"})
    await place.holds(1)


async def ageing(place: Place) -> None:
    """Messages have a time to live, and leave a marker."""
    await place.stream(
        allow_msg_ttl=True, subject_delete_marker_ttl=3600 * SECOND, max_msgs_per_subject=1
    )


async def use_ageing(place: Place) -> None:
    """It goes, and its marker comes."""
    token = f"t{place.turn}"
    await place.put(token, place.word, {"Nats-TTL": "1s"})

    async def marked() -> bool:
        found = await place.last(place.subject(token))
        return found is not None and "hdrs" in found and "data" not in found

    await eventually(marked, "a marker takes its place", WAIT_S)
    await place.holds(place.rounds)


async def batches(place: Place) -> None:
    """Batches are stored whole."""
    await place.stream(allow_atomic=True)


async def use_batches(place: Place) -> None:
    """Three messages at once; one that was sent half is nobody's."""
    tries = 0

    async def stored() -> bool:
        nonlocal tries
        tries += 1
        named = {"Nats-Batch-Id": f"b{place.turn}-{tries}"}
        try:
            for seq in (1, 2):
                headers = {**named, "Nats-Batch-Sequence": str(seq)}
                await place.client.publish(place.subject(), b"x", headers=headers)
            headers = {**named, "Nats-Batch-Sequence": "3", "Nats-Batch-Commit": "1"}
            answer = await place.client.request(
                place.subject(), b"x", headers=headers, timeout=TRY_S
            )
        except Error:
            return False
        return b'"count":3' in answer.data

    before = (await place.state())["messages"]
    await eventually(stored, "the batch is stored", WAIT_S)
    after = (await place.state())["messages"]
    assert after > before and after % 3 == 0, "whole batches only"


async def fast(place: Place) -> None:
    """Batches that are told how far they are."""
    await place.stream(allow_batched=True)


async def use_fast(place: Place) -> None:
    """Three messages, and the answer to the last."""

    async def stored() -> bool:
        heard = await place.client.subscribe(f"{place.client.new_inbox()}.>")
        batch = Batch(place.client, heard, place.name)
        try:
            for seq, operation in ((1, START), (2, APPEND), (3, COMMIT)):
                await batch.send(seq, operation)
            while "count" not in (found := await heard_of(batch)):
                if "error" in found:
                    return False
        except Error:
            return False
        finally:
            await heard.unsubscribe()
        return bool(found["count"] == 3)

    await eventually(stored, "the fast batch is stored", WAIT_S)


async def heard_of(batch: Batch) -> Any:
    """The next answer; Error if none comes soon."""
    data = (await batch.subscription.next_msg(TRY_S)).data
    return json.loads(data) if data else {"error": "nobody is there"}


async def counters(place: Place) -> None:
    """A stream whose messages are sums."""
    await place.stream(allow_msg_counter=True, allow_direct=True)


async def use_counters(place: Place) -> None:
    """One more each time; a sum that was asked for twice is seen."""
    named = {"Nats-Incr": "+1", "Nats-Msg-Id": place.word}
    found = await place.send(place.subject(), b"", named)
    assert "error" not in found, found
    message = await place.last(place.subject())
    assert message is not None
    assert await value(place) == place.rounds


async def value(place: Place) -> int:
    """The sum."""
    message = await place.last(place.subject())
    assert message is not None
    return int(json.loads(base64.b64decode(message["data"]))["val"])


async def schedules(place: Place) -> None:
    """Messages that are stored when their time comes."""
    await place.stream(allow_msg_schedules=True, allow_msg_ttl=True)


async def use_schedules(place: Place) -> None:
    """It comes under its target's subject."""
    at = (datetime.now(UTC) + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    target = place.subject(f"out.{place.turn}")
    headers = {"Nats-Schedule": f"@at {at}", "Nats-Schedule-Target": target}
    await place.put(f"plan.{place.turn}", place.word, headers)

    async def made() -> bool:
        return await place.last(target) is not None

    await eventually(made, "the scheduled message is made", WAIT_S)


async def chain(place: Place) -> None:
    """A stream whose messages are chained."""
    await place.stream(metadata={"jsctl.chain": "sha256"})


async def use_chain(place: Place) -> None:
    """The chain is proved, with what was removed."""
    first = await place.put("a", place.word)
    await place.put("b", place.word)
    await place.ask(f"STREAM.MSG.DELETE.{place.name}", {"seq": first})
    await place.holds(place.rounds)
    subject = f"STREAM.VERIFY.{place.name}"
    await place.done(subject, {"start": True})

    async def proved() -> bool:
        found = (await place.done(subject)).get("audit", {})
        states = [one["state"] for one in found.get("replicas", ())]
        assert "broken" not in states, found
        return bool(found.get("done")) and "proved" in states

    await eventually(proved, "the chain is proved", WAIT_S)


async def limited(place: Place) -> None:
    """One message a subject, and no other in its place."""
    limits: Config = {"max_msgs_per_subject": 1, "discard": "new", "discard_new_per_subject": True}
    await place.stream(**limits)


async def use_limited(place: Place) -> None:
    """The second is refused."""
    await place.put(f"t{place.turn}", place.word)
    found = await place.send(place.subject(f"t{place.turn}"), b"another")
    assert found["error"]["err_code"] == 10077, found
    await place.holds(place.rounds)


async def compressed(place: Place) -> None:
    """A stream in compressed blocks."""
    await place.stream(compression="s2")


async def use_compressed(place: Place) -> None:
    """A long text comes back."""
    text = f"{place.word} " * 2000
    seq = await place.put("a", text)
    found = (await place.done(f"STREAM.MSG.GET.{place.name}", {"seq": seq}))["message"]
    assert base64.b64decode(found["data"]) == text.encode()
    await place.holds(place.rounds)
