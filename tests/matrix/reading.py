"""Features of reading, and of changing what is there: each is made, and used in rounds."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error

from tests.matrix.place import SECOND, TRY_S, WAIT_S, Place
from tests.support.waiting import eventually

REPLICAS = {1: (3, 1, 3), 3: (5, 3, 5), 5: (3, 3, 5)}
"""What a stream that was made with so many is changed to, in its rounds; with the second one server
is dead, but for those of one replica."""


async def pushed(place: Place) -> None:
    """A consumer that sends by itself, waits for who is slow, and says that it is alive."""
    await place.stream()
    await place.consumer(
        deliver_subject=f"push.{place.name}",
        flow_control=True,
        idle_heartbeat=SECOND // 2,
        headers_only=True,
    )


async def use_pushed(place: Place) -> None:
    """Whoever listens hears what is new, its size instead of itself, and heartbeats behind it."""
    heard = await place.client.subscribe(f"push.{place.name}")
    await place.put("a", place.word)
    message = await arrived(heard, lambda one: one.reply.startswith("$JS.ACK."))
    assert message.data == b"" and message.headers
    assert message.headers["Nats-Msg-Size"] == str(len(place.word))
    await place.acked(message)
    await arrived(heard, lambda one: "Nats-Last-Consumer" in (one.headers or {}))
    await heard.unsubscribe()


async def arrived(heard: Subscription, wanted: Callable[[Msg], bool]) -> Msg:
    """The next message of a subscription that is wanted. A leader that died says nothing for a
    while, and one that waits for who is slow is told to go on."""

    async def seen() -> Msg | None:
        with suppress(Error):
            message: Msg = await heard.next_msg(TRY_S)
            if message.headers and "Nats-Consumer-Stalled" in message.headers:
                await message._client.publish(str(message.headers["Nats-Consumer-Stalled"]))
            if wanted(message):
                return message
        return None

    return await eventually(seen, "a message comes", WAIT_S)


async def ordered(place: Place) -> None:
    """A stream that others read from its start."""
    await place.stream()


async def use_ordered(place: Place) -> None:
    """All is there, in its order, and nothing twice."""
    for token in "abc":
        await place.put(token, place.word)

    async def all_read() -> bool:
        heard = await place.js.subscribe(f"{place.name}.>", ordered_consumer=True)
        try:
            found = [await heard.next_msg(TRY_S) for _ in range(3 * place.rounds)]
        finally:
            await heard.unsubscribe()
        seqs = [one.metadata.sequence.stream for one in found]
        assert seqs == sorted(set(seqs)), seqs
        return found[-1].data == place.word.encode()

    await place.until(all_read, "an ordered consumer reads all")


async def directs(place: Place) -> None:
    """A stream of which any replica answers."""
    await place.stream(allow_direct=True)


async def use_directs(place: Place) -> None:
    """A batch, the last of each subject, and one by its key: what was stored is among them."""
    seqs = [await place.put(token, place.word) for token in "abc"]
    name = place.name

    async def all_found() -> bool:
        batch = await answers(place, name, {"seq": seqs[0], "batch": 3})
        lasts = await answers(place, name, {"multi_last": [f"{name}.>"]})
        one = await place.client.request(f"$JS.API.DIRECT.GET.{name}.{name}.b", b"", TRY_S)
        told = [str((message.headers or {}).get("Nats-Sequence")) for message in [*batch, one]]
        assert [message.data for message in lasts] == [place.word.encode()] * 3, lasts
        return told == [*map(str, seqs), str(seqs[1])]

    await place.until(all_found, "what was stored is found")


async def answers(place: Place, stream: str, body: dict[str, Any]) -> list[Msg]:
    """The messages of an answer, without its end. Raises Error if that does not come."""
    heard = await place.client.subscribe(place.client.new_inbox())
    found: list[Msg] = []
    try:
        request = json.dumps(body).encode()
        await place.client.publish(f"$JS.API.DIRECT.GET.{stream}", request, heard.subject)
        while True:
            message = await heard.next_msg(TRY_S)
            if not (message.headers or {}).get("Nats-Sequence"):
                return found
            found.append(message)
    finally:
        await heard.unsubscribe()


async def purged(place: Place) -> None:
    """A stream of which parts go."""
    await place.stream()


async def use_purged(place: Place) -> None:
    """One subject, what is before a sequence, all but the last: what is left stays left."""
    first = (await place.state())["last_seq"] + 1
    seqs = [await place.put(token, place.word) for token in ("a", "b.1", "c", "b.2", "d")]
    assert seqs == list(range(first, first + 5))
    await place.done(f"STREAM.PURGE.{place.name}", {"filter": f"{place.name}.b.*"})
    await place.holds(3 + (place.rounds > 1))
    await place.done(f"STREAM.PURGE.{place.name}", {"seq": seqs[2]})
    await place.holds(2)
    await place.done(f"STREAM.PURGE.{place.name}", {"keep": 1})
    await place.holds(1)
    state = await place.state()
    assert (state["first_seq"], state["last_seq"]) == (seqs[4], seqs[4]), state


async def scaled(place: Place) -> None:
    """A stream with a consumer, whose replicas become more and fewer."""
    await place.stream()
    await place.consumer()


async def use_scaled(place: Place) -> None:
    """What is stored before, while and after they do is there, once, and is consumed."""
    await place.put("before", place.word)
    count = REPLICAS[place.replicas][min(place.turn, 3) - 1]
    config = (await place.done(f"STREAM.INFO.{place.name}"))["config"]
    await place.done(f"STREAM.UPDATE.{place.name}", {**config, "num_replicas": count})
    await place.put("while", place.word)

    async def settled() -> bool:
        info = await place.done(f"STREAM.INFO.{place.name}")
        replicas = info["cluster"].get("replicas") or []
        whole = all(one["current"] or one.get("offline") for one in replicas)
        return bool(info["cluster"].get("leader")) and len(replicas) == count - 1 and whole

    await eventually(settled, f"{place.name} has {count} replicas", WAIT_S)
    await place.put("after", place.word)
    await place.holds(3 * place.rounds)
    for token in ("before", "while", "after"):
        message = await place.next()
        assert message.subject == place.subject(token), message.subject
        await place.acked(message)
