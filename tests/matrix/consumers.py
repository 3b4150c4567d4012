"""Features of consumers, buckets and archives, made and used as those of streams."""

import json
import shutil
from datetime import UTC, datetime, timedelta

from nats.errors import Error

from jsctl.client.backup import backup_stream, restore_stream
from jsctl.client.manager import open_manager
from jsctl.settings import Context, Settings
from tests.matrix.place import SECOND, WAIT_S, Config, Place
from tests.support.waiting import eventually

OUT_OF_CONTROL = 10
"""More deliveries than anybody can explain."""


async def dead_letters(place: Place) -> None:
    """What a consumer gives up is stored elsewhere."""
    await place.stream()
    await place.stream("_DEAD", subjects=[f"dead.{place.name}.>"])
    metadata = {"jsctl.dead_letter_subject": "dead"}
    await place.consumer(metadata=metadata, max_deliver=3)


async def use_dead_letters(place: Place) -> None:
    """A message that is terminated is there."""
    await place.put("a", place.word)

    async def given_up() -> bool:
        if (await place.state(f"{place.name}_DEAD"))["messages"] >= place.rounds:
            return True
        message = await place.next()
        await place.client.publish(message.reply, b"+TERM")
        return False

    await given_up()

    async def counted() -> bool:
        return bool((await place.state(f"{place.name}_DEAD"))["messages"] >= place.rounds)

    await eventually(counted, "the letter is stored", WAIT_S)
    await place.holds(place.rounds, f"{place.name}_DEAD")


async def work(place: Place) -> None:
    """A queue: what is done is gone."""
    await place.stream(retention="workqueue")
    await place.consumer()


async def interest(place: Place) -> None:
    """What everybody has is gone."""
    await place.stream(retention="interest")
    await place.consumer()
    await place.consumer(name="D")


async def use_interest(place: Place) -> None:
    """It stays until the second has it, too."""
    await place.put("a", place.word)
    await place.acked(await place.next())
    await place.holds(1)
    await place.acked(await place.next(name="D"))
    await place.holds(0)


async def consumed(place: Place) -> None:
    """One message goes through."""
    await place.put("a", place.word)
    message = await place.next()
    assert message.data == place.word.encode()
    await place.acked(message)


async def use_work(place: Place) -> None:
    """Nothing is left."""
    await consumed(place)
    await place.holds(0)


async def overflow(place: Place) -> None:
    """A group that helps out when there is much to do."""
    await place.stream()
    await place.consumer(priority_groups=["g"], priority_policy="overflow")


async def use_overflow(place: Place) -> None:
    """Who waits for two gets none of one."""
    await place.put("a", place.word)
    heard = await place.client.subscribe(place.client.new_inbox())
    body = {"batch": 1, "expires": SECOND // 5, "group": "g", "min_pending": 2}
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{place.name}.C"
    await place.client.publish(subject, json.dumps(body).encode(), heard.subject)
    try:
        assert not (await heard.next_msg(1.0)).reply.startswith("$JS.ACK")
    except Error:
        pass
    await heard.unsubscribe()
    await place.acked(await place.next(group="g"))


async def pinned(place: Place) -> None:
    """A group in which one client has all."""
    await place.stream()
    group: Config = {"priority_groups": ["g"], "priority_policy": "pinned_client"}
    await place.consumer(priority_timeout=SECOND, **group)


async def use_pinned(place: Place) -> None:
    """Messages say who is pinned."""
    await place.put("a", place.word)
    message = await place.next(group="g")
    assert message.headers and message.headers["Nats-Pin-Id"]
    await place.acked(message)


async def prioritized(place: Place) -> None:
    """A group with an order."""
    await place.stream()
    await place.consumer(priority_groups=["g"], priority_policy="prioritized")


async def use_prioritized(place: Place) -> None:
    """Who asks with a priority gets it."""
    await place.put("a", place.word)
    await place.acked(await place.next(group="g", priority=1))


async def pause(place: Place) -> None:
    """A consumer that rests."""
    await place.stream()
    await place.consumer()


async def use_pause(place: Place) -> None:
    """Nothing comes until it goes on."""
    subject = f"CONSUMER.PAUSE.{place.name}.C"
    until = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (await place.done(subject, {"pause_until": until}))["paused"] is True
    await place.put("a", place.word)

    async def waits() -> bool:
        return bool((await place.done(f"CONSUMER.INFO.{place.name}.C"))["num_pending"])

    # The consumer's leader may be a follower of the stream, which learns of it a little later.
    await eventually(waits, "the message waits", WAIT_S)
    assert (await place.done(subject, {})).get("paused", False) is False
    await place.acked(await place.next())


async def backoff(place: Place) -> None:
    """Deliveries that come later each time."""
    await place.stream()
    await place.consumer(backoff=[SECOND // 5, SECOND // 2], max_deliver=OUT_OF_CONTROL)


async def use_backoff(place: Place) -> None:
    """It comes again."""
    await place.put("a", place.word)
    first = await place.next()
    again = await place.next()
    assert again.data == first.data and again.metadata.num_delivered > 1
    await place.acked(again)


async def delayed(place: Place) -> None:
    """Messages that are sent back for a while."""
    await place.stream()
    await place.consumer()


async def use_delayed(place: Place) -> None:
    """It is listed, and comes back."""
    await place.put("a", place.word)
    message = await place.next()
    subject = f"CONSUMER.WAITING.{place.name}.C"

    async def listed() -> bool:
        await place.client.publish(message.reply, b'-NAK {"delay": 2000000000}')
        found = await place.done(subject)
        return any(one.get("nak") or one.get("queued") for one in found["messages"])

    await eventually(listed, "the delay is listed", WAIT_S)
    await place.acked(await place.next())


async def bucket(place: Place) -> None:
    """Keys and values, with limits of time that leave markers."""
    config = {
        "subjects": [f"$KV.{place.name}.>"],
        "max_msgs_per_subject": 1,  # with more, keys live as long as markers at least
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_direct": True,
        "discard": "new",
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": 3600 * SECOND,
        "name": f"KV_{place.name}",
    }
    made = {"num_replicas": place.replicas, "storage": place.storage, **config}
    await place.done(f"STREAM.CREATE.KV_{place.name}", made)


async def use_bucket(place: Place) -> None:
    """Put, get, a key that ages, one that is deleted."""
    subject, stream = f"$KV.{place.name}", f"KV_{place.name}"
    await place.put_to(f"{subject}.k", place.word)
    await place.put_to(f"{subject}.short", place.word, {"Nats-TTL": "1s"})
    await place.put_to(f"{subject}.gone", place.word)
    await place.put_to(f"{subject}.gone", f"no {place.word}", {"KV-Operation": "DEL"})

    async def read() -> bool:
        values = await place.js.key_value(place.name)
        return bool((await values.get("k")).value == place.word.encode())

    await place.until(read, "the value is read")
    found = await place.last(f"{subject}.gone", stream)
    assert found is not None and "hdrs" in found

    async def marked() -> bool:
        marker = await place.last(f"{subject}.short", stream)
        return marker is not None and "data" not in marker

    await eventually(marked, "the key's marker", WAIT_S)


async def objects(place: Place) -> None:
    """A store of objects."""
    config = {
        "name": f"OBJ_{place.name}",
        "subjects": [f"$O.{place.name}.C.>", f"$O.{place.name}.M.>"],
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "discard": "new",
    }
    made = {"num_replicas": place.replicas, "storage": place.storage, **config}
    await place.done(f"STREAM.CREATE.OBJ_{place.name}", made)


async def use_objects(place: Place) -> None:
    """What was put comes back, in pieces."""
    data = place.word.encode() * 30_000

    async def kept() -> bool:
        store = await place.js.object_store(place.name)
        await store.put(f"o{place.turn}", data)
        return bool((await store.get(f"o{place.turn}")).data == data)

    await place.until(kept, "the object is put and read")


async def archive(place: Place) -> None:
    """A stream with a consumer, to be backed up."""
    await place.stream()
    await place.consumer()


async def use_archive(place: Place) -> None:
    """Backed up, deleted, restored: as before."""
    await place.put("a", place.word)
    await place.put("b", place.word)
    settings = Settings(connection=Context(url=",".join(place.urls)), timeout_ns=20 * SECOND)
    directory = place.directory / f"{place.name}-{place.turn}"

    async def taken() -> bool:
        shutil.rmtree(directory, ignore_errors=True)
        async with open_manager(settings) as manager:
            await backup_stream(manager, place.name, directory)
        return True

    await place.until(taken, "it is backed up")
    before = await place.state()
    config = (await place.done(f"STREAM.INFO.{place.name}"))["config"]
    await place.done(f"STREAM.DELETE.{place.name}")

    async def back() -> bool:
        async with open_manager(settings) as manager:
            await restore_stream(manager, directory, config, before)
        return True

    await place.until(back, "it is restored")
    await place.holds(2 * place.rounds)
    after = await place.state()
    assert (after["first_seq"], after["last_seq"]) == (before["first_seq"], before["last_seq"])
    assert "error" not in await place.ask(f"CONSUMER.INFO.{place.name}.C")
