"""Bugs behind the border: one connection's operation ends that connection, the server's own work
ends the turn."""

import random
from typing import NoReturn

import pytest

from jsctl.broker.compression_options import FAST, Compression
from jsctl.broker.errors import DiskError
from jsctl.broker.handlers import api, direct
from jsctl.broker.handlers.decisions import Decider
from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.linking.compression import PORTION_BYTES, packed
from jsctl.broker.options import MappingOptions, MappingTarget
from jsctl.broker.sessions.last_line import TEXT
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.node_play import NodePlay, PlayClient, node_options
from tests.support.sim_disk import SimDisk

SAID = b"-ERR '%s'" % TEXT
HALVES = (MappingTarget("one", 50), MappingTarget("two", 50))
DRAWN = 100
"""Weights of mappings are drawn below it, and nothing else is."""


class Bug(Exception):
    """Foreseen by nobody."""


def fails(*_: object, **__: object) -> NoReturn:
    """A part with a bug."""
    raise Bug("here")


def unread(data: bytes) -> None:
    """What is said to a connection is of no concern."""


class Chance:
    """Fails once it is told to."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self._drawn = random.Random(1)

    def __call__(self, below: int) -> int:
        if below == DRAWN and self.error is not None:
            raise self.error
        return self._drawn.randrange(below)


class Disk(SimDisk):
    """Its room cannot be told once it is told to fail. The node asks within its turn."""

    error: Exception | None = None

    def free_bytes(self) -> int:
        if self.error is not None:
            raise self.error
        return super().free_bytes()


def conns(play: NodePlay) -> list[int]:
    return [session.conn for session in play.node.sessions]


def count(play: NodePlay) -> object:
    return play.get("/varz")[1]["jsctl_internal_errors"]


def mapped(chance: Chance) -> NodePlay:
    options = node_options(accounts=(), mappings=(MappingOptions("m", HALVES),))
    return NodePlay(options, jitter=chance)


def test_a_bug_in_a_session_ends_the_connection() -> None:
    chance = Chance()
    play = mapped(chance)
    victim, other = play.connect(), play.connect()
    other.subscribe("*")
    chance.error = Bug("in a mapping")
    victim.publish("m", b"lost")
    assert victim.lines[-1] == SAID
    assert conns(play) == [other.conn]
    assert [(fault.place, fault.error) for fault in play.faults] == [
        (f"connection {victim.conn}", chance.error)
    ]
    assert play.faults[0].error.__traceback__ is not None
    assert count(play) == 1
    chance.error = None
    play.connect().publish("b", b"kept")
    assert other.messages == [("b", "", b"kept")]
    assert play.exit is None


def test_a_bug_in_what_a_later_turn_opens_ends_the_connection() -> None:
    """A few compressed bytes may be more than one turn is for."""
    chance = Chance()
    options = node_options(
        accounts=(),
        mappings=(MappingOptions("m", HALVES),),
        leafnodes=LeafNodeOptions(port=7422, compression=Compression(FAST)),
    )
    play = NodePlay(options, jitter=chance)
    leaf = play.clients[99] = PlayClient(play, 99)
    leaf.take = unread  # type: ignore[method-assign]  # it is compressed
    play.turn(accepted=[Accepted(99, ConnKind.LEAF, "127.0.0.1", 1)])
    leaf.send(b'INFO {"compression":"s2_fast"}\r\n')
    leaf.send(packed(FAST, b'CONNECT {"name":"l","cluster":"l"}\r\n'))
    chance.error = Bug("in a mapping")
    large = b"LMSG s %d\r\n%s\r\n" % (PORTION_BYTES // 2, b"x" * (PORTION_BYTES // 2))
    leaf.send(packed(FAST, large * 4 + b"LMSG m 1\r\nx\r\n"))
    assert [(fault.place, fault.error) for fault in play.faults] == [
        ("connection 99", chance.error)
    ]
    assert play.get("/varz")[1]["leafnodes"] == 0


def test_what_came_before_the_bug_was_done_and_nothing_behind_it() -> None:
    chance = Chance()
    play = mapped(chance)
    victim = play.connect()
    chance.error = Bug("in a mapping")
    victim.lines.clear()
    victim.send(b"PING\r\nPUB m 1\r\nx\r\nPING\r\n")
    assert victim.lines == [b"PONG", SAID]


def test_a_bug_in_a_handler_is_answered_and_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = NodePlay()
    victim, other = play.connect("a"), play.connect("a")
    route = api.Route("account_info", Decider.META_LEADER, fails)
    monkeypatch.setitem(api.ROUTES, "account_info", route)
    answer = victim.ask("$JS.API.INFO")
    assert answer["error"] == {
        "code": 500,
        "err_code": 10051,
        "description": "internal server error",
    }
    assert victim.lines[-1] == SAID
    assert conns(play) == [other.conn]
    assert [type(fault.error) for fault in play.faults] == [Bug]
    assert count(play) == 1
    assert "error" not in other.ask("$JS.API.STREAM.NAMES")


def test_a_bug_in_a_direct_get(monkeypatch: pytest.MonkeyPatch) -> None:
    play = NodePlay()
    victim, other = play.connect("a"), play.connect("a")
    other.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"], allow_direct=True)
    play.run(1)
    monkeypatch.setattr(direct, "begin", fails)
    victim.request("$JS.API.DIRECT.GET.S", b'{"seq":1}')
    assert conns(play) == [other.conn]
    assert count(play) == 1


def test_a_bug_in_a_page_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    play = NodePlay()
    with monkeypatch.context() as patched:
        patched.setattr(play.node.sessions, "closed", None)
        assert play.get("/connz", state="closed")[0] == 500
    assert count(play) == 1


@pytest.mark.parametrize("error", [Bug("torn"), DiskError("broken")], ids=["bug", "named"])
def test_a_bug_in_the_servers_own_work_ends_the_turn(error: Exception) -> None:
    disk = Disk(random.Random(1))
    play = NodePlay(disk=disk)
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"])
    client.subscribe("answers.*")
    client.publish("s", b"x", "answers.before")
    disk.error = error
    with pytest.raises(type(error)):
        for _ in range(10):
            play.run(0.1)
            client.publish("s", b"x", "answers.behind")
    assert [subject for subject, _, _ in client.messages if subject.startswith("answers")] == [
        "answers.before"
    ]
    assert not play.faults


def test_an_error_with_a_name_is_no_bug_of_a_connection() -> None:
    chance = Chance()
    play = mapped(chance)
    victim = play.connect()
    chance.error = DiskError("cannot be read")
    with pytest.raises(DiskError):
        victim.publish("m", b"x")
