"""`dlq`: what consumers gave up is found, shown, sent again once, and forgotten, on any server."""

import asyncio
import json
from collections.abc import Callable

import pytest

from jsctl.client.connection import connect
from jsctl.settings import Context, Settings
from tests.commands.conftest import KINDS, Result, Server
from tests.support.waiting import wait_for

Run = Callable[..., Result]
pytestmark = pytest.mark.parametrize("server", list(KINDS), indirect=True, scope="package")


def given_up(run: Run, server: Server) -> None:
    """Two messages of ORDERS: one delivered too often, one terminated; a third is fine."""
    words = ("--subjects", "orders.>", "--defaults", "--dupe-window", "1m")
    assert run("stream", "add", "ORDERS", *words).code == 0
    assert run("dlq", "setup").code == 0
    flags = ("--pull", "--max-deliver", "1", "--wait", "100ms", "--defaults")
    assert run("consumer", "add", "ORDERS", "C", *flags).code == 0
    for at in range(3):
        headers = ("-H", "A:b", "-H", f"Nats-Msg-Id:{at}")
        assert run("pub", f"orders.{at}", f"body {at}", "-J", "-q", *headers).code == 0
    asyncio.run(_consumed(server))

    def noted() -> bool:
        run("consumer", "next", "ORDERS", "C", "--timeout", "200ms", "--no-ack")
        listed = run("dlq", "ls", "-j")
        return listed.code == 0 and len(json.loads(listed.out)) == 2

    wait_for(noted, "both advisories are in the stream")


async def _consumed(server: Server) -> None:
    """The first message is not acknowledged, the second terminated, the third acknowledged."""
    async with connect(Settings(connection=Context(url=server.url))) as client:
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox)
        subject = "$JS.API.CONSUMER.MSG.NEXT.ORDERS.C"
        await client.publish(subject, b'{"batch":3,"expires":20000000000}', reply=inbox)
        for answer in (b"", b"+TERM cannot be read", b"+ACK"):
            message = await subscription.next_msg(timeout=30)
            if answer:
                await client.publish(message.reply, answer)
        await client.flush()


def letters(run: Run, *words: str) -> dict[str, dict[str, object]]:
    done = run("dlq", "ls", "-j", *words)
    assert done.code == 0, done.err
    return {one["why"]: one for one in json.loads(done.out)}


def test_dead_letters_from_the_first_to_the_last(run: Run, server: Server) -> None:
    none = run("dlq", "ls")
    error, hint, _ = none.err.splitlines()
    assert (none.code, error) == (1, "jsctl: error: no stream notes dead letters")
    assert hint.startswith("  jsctl dlq setup makes one")
    given_up(run, server)
    again = run("dlq", "setup", "--dlq", "OTHER")
    assert (again.code, "stream DLQ notes dead letters already" in again.err) == (1, True)

    found = letters(run)
    late, ended = found["max-deliver"], found["terminated"]
    assert (late["sequence"], late["subject"], late["deliveries"]) == (1, "orders.0", 1)
    assert (ended["sequence"], ended["subject"]) == (2, "orders.1")
    assert ended["reason"] == "cannot be read"
    assert list(letters(run, "--why", "terminated")) == ["terminated"]
    assert list(letters(run, "--subject", "orders.0")) == ["max-deliver"]
    assert letters(run, "--stream", "NONE") == {}
    assert "2 Dead Letters in DLQ" in run("dlq", "ls").out

    shown = run("dlq", "inspect", str(ended["id"]))
    assert (shown.code, "body 1" in shown.out, "A: b" in shown.out) == (0, True, True)

    number = str(late["id"])
    planned = run("dlq", "replay", number, "--dry-run")
    assert (planned.code, "orders.0" in planned.out, len(letters(run))) == (0, True, 2)
    refused = run("dlq", "replay")
    assert (refused.code, "choose dead letters" in refused.err) == (1, True)
    unsure = run("dlq", "replay", number)
    assert (unsure.code, "without a terminal" in unsure.err) == (1, True)

    done = run("dlq", "replay", number, "-f")
    assert (done.code, done.out) == (
        0,
        f"{number}: stored as message 4 of stream ORDERS on orders.0\n",
    )
    assert list(letters(run)) == ["terminated"]
    stored = run("stream", "get", "ORDERS", "4").out
    assert "body 0" in stored
    for line in ("A: b", "Dead-Letter-Consumer: C", "Dead-Letter-Sequence: 1"):
        assert line in stored, stored

    dropped = run("dlq", "drop", "--all", "--remove", "-f", "-j")
    assert dropped.code == 0
    assert list(json.loads(dropped.out)["done"]) == [str(ended["id"])]
    assert run("stream", "get", "ORDERS", "2").code == 1
    assert run("dlq", "ls").out == "No dead letters\n"
    assert run("dlq", "drop", number, "-f").code == 1


def test_an_interrupted_replay_stores_nothing_twice(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between storing and forgetting: the second run finds it stored."""
    given_up(run, server)
    from jsctl.commands.dlq import act

    async def killed(*_given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(act, "forget", killed)
        assert run("dlq", "replay", "--why", "max-deliver", "-f").code == 130
    assert len(letters(run)) == 2
    done = run("dlq", "replay", "--why", "max-deliver", "-f", "--remove")
    assert (done.code, "stored already as message 4" in done.out) == (0, True)
    assert list(letters(run)) == ["terminated"]
    assert run("stream", "get", "ORDERS", "1").code == 1, "removed as well"
    sent = run("dlq", "replay", "--all", "--to", "nobody.listens", "-f")
    assert (sent.code, len(letters(run))) == (1, 1), "what was not stored stays"


def test_what_is_gone_is_told_and_can_be_dropped(run: Run, server: Server) -> None:
    given_up(run, server)
    assert run("stream", "purge", "ORDERS", "-f").code == 0
    assert "gone" in run("dlq", "ls").out
    done = run("dlq", "replay", "--all", "-f")
    assert (done.code, done.err.count("is gone")) == (1, 2)
    assert run("dlq", "drop", "--all", "-f").code == 0
    assert letters(run) == {}


def noted(run: Run, consumer: str = "C", **more: object) -> None:
    """An advisory as anybody can publish one."""
    kind = "io.nats.jetstream.advisory.v1.max_deliver"
    told = {"type": kind, "stream": "ORDERS", "consumer": consumer, "stream_seq": 1, **more}
    subject = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.ORDERS.{consumer}"
    assert run("pub", subject, json.dumps(told), "-J", "-q").code == 0


def stored(run: Run) -> None:
    """A stream with a message, and one for dead letters."""
    assert run("stream", "add", "ORDERS", "--subjects", "orders.>", "--defaults").code == 0
    assert run("dlq", "setup").code == 0
    assert run("pub", "orders.0", "body", "-J", "-q").code == 0


def test_what_is_no_advisory_is_in_nobodys_way(run: Run, server: Server) -> None:
    stored(run)
    for name in ("", "a b", "a.b", "ORDERS\r\nPING", "\ud800", None):
        noted(run, stream=name)
    noted(run, consumer="D", **{"stream_seq": -1})
    for sequence in (True, 1 << 70, 1.5, "1"):
        noted(run, stream_seq=sequence)
    assert run("dlq", "ls").out == "No dead letters\n"
    noted(run)
    assert [one["consumer"] for one in letters(run).values()] == ["C"]


def test_a_message_that_two_gave_up_goes_where_each_is_to_go(run: Run, server: Server) -> None:
    stored(run)
    assert run("stream", "add", "AGAIN", "--subjects", "again.*", "--defaults").code == 0
    for consumer in ("C", "D"):
        noted(run, consumer)
    for at, consumer in enumerate(("C", "D"), 1):
        words = ("--consumer", consumer, "--to", f"again.{consumer}", "-f")
        done = run("dlq", "replay", *words)
        assert f"stored as message {at} of stream AGAIN on again.{consumer}" in done.out, done.out
