"""What a reload does in a whole node: streams of accounts that come and go, limits, INFO."""

import gc
import weakref
from dataclasses import replace

import pytest

from jsctl.broker.errors import ConfigError
from jsctl.broker.gateway_options import GatewayOptions
from jsctl.broker.leafnode_options import LeafNodeOptions, LeafRemote, LeafUrl
from jsctl.broker.options import (
    AccountJetStream,
    AccountOptions,
    ClientLimits,
    ClusterOptions,
    ImportOptions,
    LogOptions,
    Options,
    UserOptions,
)
from jsctl.broker.turn import Accepted, ConnKind, TurnOutputs
from tests.support.node_play import NodePlay, PlayClient, node_options, user


def configured(*names: str, **more: object) -> Options:
    """Accounts with JetStream, and the system's; users have the name of their account."""
    found = [
        AccountOptions(name, users=(user(name.lower()),), jetstream=AccountJetStream())
        for name in names
    ]
    system = AccountOptions("$SYS", users=(user("sys"),))
    return node_options(accounts=(*found, system), **more)


def stored(client: PlayClient) -> int:
    """Messages in the stream."""
    count: int = client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"]
    return count


def reload(play: NodePlay, options: Options) -> None:
    """As the edge does it."""
    play.node.try_out(options)
    play.node.reload(options)
    play.turn()


def test_a_stream_of_an_account_that_goes_and_comes_again() -> None:
    play = NodePlay(configured("A", "B"))
    client = play.connect("a")
    created = client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s.>"], allow_direct=True)
    assert "error" not in created
    made = client.ask(
        "$JS.API.CONSUMER.CREATE.S.C",
        stream_name="S",
        config={"durable_name": "C", "ack_policy": "explicit"},
    )
    assert "error" not in made
    client.publish("s.x", b"one")
    reload(play, configured("B"))
    assert client.conn not in [one.conn for one in play.node.sessions]
    other = play.connect("b")
    other.publish("s.x", b"not for the stream")
    reload(play, configured("A", "B"))
    play.run(1)
    again = play.connect("a")
    assert stored(again) == 1
    again.publish("s.x", b"two")
    assert stored(again) == 2
    assert again.request("$JS.API.DIRECT.GET.S", b'{"seq": 2}') == [b"two"]
    assert again.request("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch": 1}') == []
    assert [body for subject, _, body in again.messages if subject == "s.x"] == [b"one"]
    assert play.faults == []


def test_a_new_account_has_jetstream_at_once() -> None:
    play = NodePlay(configured("A"))
    reload(play, configured("A", "B"))
    client = play.connect("b")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"])
    assert client.ask("$SYS.REQ.USER.INFO")["data"]["account"] == "B"
    less = configured("A", "B")
    off = replace(less.accounts[1], jetstream=None)
    reload(play, replace(less, accounts=(less.accounts[0], off, less.accounts[2])))
    assert client.ask("$JS.API.INFO")["error"]["err_code"] == 10039


def test_limits_of_the_server_and_of_an_account_count_at_once() -> None:
    play = NodePlay(configured("A"))
    client = play.connect("a")
    options = configured("A")
    limited = replace(options.accounts[0], jetstream=AccountJetStream(streams_max=1))
    grown = replace(options.jetstream, store_bytes_max=5 << 30)
    reload(play, replace(options, accounts=(limited, options.accounts[1]), jetstream=grown))
    client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"])
    answer = client.ask("$JS.API.STREAM.CREATE.T", name="T", subjects=["t"])
    assert answer["error"]["err_code"] == 10027
    assert play.get("/jsz")[1]["config"]["max_storage"] == 5 << 30


def test_what_would_not_work_is_refused_before_anything_changes() -> None:
    play = NodePlay(configured("A"))
    before = play.get("/accountz")[1]
    options = configured("A", "B")
    bad = replace(options.accounts[0], imports=(ImportOptions("B", "nothing"),))
    with pytest.raises(ConfigError):
        play.node.try_out(replace(options, accounts=(bad, *options.accounts[1:])))
    assert play.get("/accountz")[1]["accounts"] == before["accounts"]


def hang(play: NodePlay, conn: int, login: str) -> PlayClient:
    """A leaf node logs in."""
    leaf = play.clients[conn] = PlayClient(play, conn)
    play.turn(accepted=[Accepted(conn, ConnKind.LEAF, "127.0.0.1", 40000 + conn)])
    leaf.send(b'CONNECT {%s,"name":"l","cluster":"l"}\r\n' % login.encode())
    leaf.send(b"LS+ to.leaf\r\n")
    return leaf


HASHED = "$2a$04$" + "a" * 53


@pytest.mark.parametrize(
    ("password", "waits"), [("a", False), (HASHED, True)], ids=["plain", "hashed"]
)
def test_a_leaf_node_of_an_account_that_goes_finds_the_one_that_comes(
    password: str, waits: bool
) -> None:
    """It would stay with one that nobody else is in, whatever comes later."""
    door = LeafNodeOptions(port=7422)
    options = configured("A", "B", leafnodes=door)
    account = replace(options.accounts[0], users=(UserOptions("a", password),))
    options = replace(options, accounts=(account, *options.accounts[1:]))
    play = NodePlay(options)
    login = '"user":"a","pass":"a"'
    hang(play, 90, login)
    stays = hang(play, 91, '"user":"b","pass":"b"')
    reload(play, configured("B", leafnodes=door))
    reload(play, options)
    play.turn(verified=[(90, True)])
    assert play.get("/leafz")[1]["leafnodes"] == 1
    leaf = hang(play, 92, login)
    play.turn(verified=[(92, True)])
    leaf.send(b"LS+ to.leaf\r\n")
    client = play.connect("a")
    if waits:
        play.turn(verified=[(client.conn, True)])
    client.publish("to.leaf", b"x")
    assert b"LMSG to.leaf 1" in leaf.lines
    stays.send(b"PING\r\n")
    assert stays.lines[-1] == b"PONG"


@pytest.mark.parametrize("change", ["nothing", "hash", "plain", "gone"])
def test_a_leaf_node_logs_in_with_the_password_that_counts_now(change: str) -> None:
    """It is being checked while the configuration changes."""
    users = {
        "nothing": (UserOptions("l", HASHED),),
        "hash": (UserOptions("l", HASHED[:-1] + "b"),),
        "plain": (UserOptions("l", "other"),),
        "gone": (),
    }

    def with_user(which: str) -> Options:
        options = configured("A", leafnodes=LeafNodeOptions(port=7422))
        account = replace(options.accounts[0], users=(user("a"), *users[which]))
        return replace(options, accounts=(account, *options.accounts[1:]))

    play = NodePlay(with_user("nothing"))
    hang(play, 90, '"user":"l","pass":"x"')
    reload(play, with_user(change))
    play.turn(verified=[(90, True)])
    assert play.get("/leafz")[1]["leafnodes"] == (change == "nothing")


@pytest.mark.parametrize(("before", "after"), [(1000, 1 << 20), (1 << 20, 1000)])
def test_the_largest_message_of_a_leaf_node_is_the_one_that_counts_now(
    before: int, after: int
) -> None:
    def limited(most: int) -> Options:
        door, client = LeafNodeOptions(port=7422), ClientLimits(payload_bytes_max=most)
        return configured("A", leafnodes=door, client=client)

    play = NodePlay(limited(before))
    leaf = hang(play, 90, '"user":"a","pass":"a"')
    client = play.connect("a")
    client.subscribe("s")
    reload(play, limited(after))
    leaf.send(b"LMSG s 500000\r\n%s\r\n" % bytes(500_000))
    assert len(client.messages) == (after > 500_000)


def test_an_account_that_is_gone_leaves_nothing() -> None:
    """Who makes accounts for a while would fill the memory."""
    more = {
        "leafnodes": LeafNodeOptions(port=7422),
        "gateway": GatewayOptions(name="C", port=7222),
        "cluster": ClusterOptions(name="C", port=6222),
    }
    play = NodePlay(configured("A", "B", **more))
    account = weakref.ref(play.node.router.accounts.get("A"))
    client = play.connect("a")
    client.subscribe("x")
    hang(play, 90, '"user":"a","pass":"a"')
    reload(play, configured("B", **more))
    play.run(5)
    play.node.sessions.closed.clear()
    del client
    play.clients.clear()
    gc.collect()
    assert account() is None


HUB = LeafRemote(urls=(LeafUrl("10.0.0.9", 7422),), account="A")


def test_the_first_hub_is_refused_where_nobody_would_dial_it() -> None:
    play = NodePlay(configured("A"))
    with pytest.raises(ConfigError, match="the server began without hubs"):
        reload(play, configured("A", leafnodes=LeafNodeOptions(remotes=(HUB,))))


def test_a_hub_that_was_taken_out_comes_back() -> None:
    play = NodePlay(configured("A", leafnodes=LeafNodeOptions(remotes=(HUB,))))
    reload(play, configured("A"))
    play.dials.clear()
    reload(play, configured("A", leafnodes=LeafNodeOptions(remotes=(HUB,))))
    assert [one.host for one in play.dials] == ["10.0.0.9"]


def test_a_trace_that_is_switched_on_follows_who_is_there_in_the_middle_of_a_message() -> None:
    play = NodePlay(configured("A"))
    client = play.connect("a")
    client.send(b"PUB half 7\r\nSUB")
    lines: list[str] = []
    reload(play, replace(configured("A"), log=LogOptions(trace=True)))
    perform = play._perform

    def watch(outputs: TurnOutputs) -> None:
        lines.extend(one.text for one in outputs.logs)
        perform(outputs)

    play._perform = watch  # type: ignore[method-assign]  # to see the log
    client.send(b" x 1\r\nSUB y 1\r\n")
    assert any("<<- [PUB half 7]" in line for line in lines)
    assert any("<<- [SUB y 1]" in line for line in lines)
    assert not any("[SUB x 1]" in line for line in lines)


def test_events_of_the_system_account() -> None:
    play = NodePlay(configured("A"))
    system = play.connect("sys")
    system.subscribe("$SYS.SERVER.*.STATSZ")
    before = len(system.heard("$SYS.SERVER"))
    reload(play, configured("A", server_tags=("new:tag",)))
    assert len(system.heard("$SYS.SERVER")) == before + 1
    assert play.get("/varz")[1]["tags"] == ["new:tag"]
