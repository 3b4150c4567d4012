"""`dlq` with a stream in which a consumer has what it gives up stored."""

import asyncio
import json
from collections.abc import Callable

import pytest

from jsctl.client.connection import connect
from jsctl.settings import Context, Settings
from tests.commands.conftest import Result, Server
from tests.support.waiting import wait_for

Run = Callable[..., Result]
pytestmark = pytest.mark.parametrize("server", ["jsctl"], indirect=True, scope="package")


def stored_letters(run: Run, server: Server) -> None:
    """Two letters of ORDERS in DEAD: one delivered too often, one terminated."""
    for name, subject in (("ORDERS", "orders.>"), ("DEAD", "dead.>")):
        assert run("stream", "add", name, "--subjects", subject, "--defaults").code == 0
    flags = ("--pull", "--max-deliver", "1", "--wait", "100ms", "--defaults")
    key = "jsctl.dead_letter_subject:dead"
    assert run("consumer", "add", "ORDERS", "C", *flags, "--metadata", key).code == 0
    for at in range(2):
        assert run("pub", f"orders.{at}", f"body {at}", "-J", "-q", "-H", "A:b").code == 0
    asyncio.run(_consumed(server))
    wait_for(lambda: len(listed(run)) == 2, "both letters are stored")


async def _consumed(server: Server) -> None:
    async with connect(Settings(connection=Context(url=server.url))) as client:
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox)
        subject = "$JS.API.CONSUMER.MSG.NEXT.ORDERS.C"
        await client.publish(subject, b'{"batch":2,"expires":20000000000}', reply=inbox)
        await subscription.next_msg(timeout=30)
        message = await subscription.next_msg(timeout=30)
        await client.publish(message.reply, b"+TERM cannot be read")
        await client.flush()


def listed(run: Run) -> dict[str, dict[str, object]]:
    done = run("dlq", "ls", "-j", "--dlq", "DEAD")
    assert done.code == 0, done.err
    return {one["why"]: one for one in json.loads(done.out)}


def test_letters_are_listed_replayed_once_and_dropped(run: Run, server: Server) -> None:
    stored_letters(run, server)
    found = listed(run)
    late, ended = found["max-deliver"], found["terminated"]
    assert (late["stream"], late["consumer"], late["sequence"]) == ("ORDERS", "C", 1)
    assert (late["subject"], late["deliveries"]) == ("orders.0", 1)
    assert (ended["sequence"], ended["reason"]) == (2, "cannot be read")
    assert run("stream", "purge", "ORDERS", "--force").code == 0
    shown = run("dlq", "inspect", str(ended["id"]), "--dlq", "DEAD")
    assert (shown.code, "body 1" in shown.out, "A: b" in shown.out) == (0, True, True)

    done = run("dlq", "replay", str(late["id"]), "--dlq", "DEAD", "--force")
    assert (done.code, "message 3 of stream ORDERS on orders.0" in done.out) == (0, True), done
    again = run("stream", "get", "ORDERS", "3", "-j")
    assert json.loads(again.out)["subject"] == "orders.0"
    headers = run("stream", "get", "ORDERS", "3").out
    assert "A: b" in headers and "Dead-Letter-Consumer: C" in headers
    assert "Dead-Letter-Reason" not in headers
    assert list(listed(run)) == ["terminated"]

    # The publish was acknowledged, and the letter was not deleted before the end came.
    run("pub", "dead.again", "body 0", "-J", "-q", *lettered(late))
    (letter,) = [one for one in listed(run).values() if one["sequence"] == 1]
    done = run("dlq", "replay", str(letter["id"]), "--dlq", "DEAD", "--force")
    assert (done.code, "stored already as message 3" in done.out) == (0, True), done
    assert run("dlq", "drop", "--all", "--dlq", "DEAD", "--force").code == 0
    assert listed(run) == {}
    info = json.loads(run("stream", "info", "ORDERS", "-j").out)
    assert info["state"]["messages"] == 1


def lettered(letter: dict[str, object]) -> list[str]:
    """The headers of a letter."""
    told = {
        "Stream": letter["stream"],
        "Consumer": letter["consumer"],
        "Sequence": letter["sequence"],
        "Subject": letter["subject"],
        "Deliveries": letter["deliveries"],
        "Reason": "max deliveries",
    }
    return [word for name, value in told.items() for word in ("-H", f"Dead-Letter-{name}:{value}")]
