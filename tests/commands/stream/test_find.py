"""`find`, `gaps`, moves: of streams and of consumers, on both kinds of server where they can."""

import json
import re
from collections.abc import Callable

import pytest

from jsctl.api.monitoring.connz import ConnInfo
from jsctl.api.server import ServerInfo
from jsctl.commands.server.cluster.balance import Held, over_fair_share
from jsctl.commands.stream.find import ranges
from jsctl.commands.toolkit.content.patterns import covers
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server
from tests.support import nats_tool

Run = Callable[..., Result]
ENABLED = ["nats-server", "jsctl"]
of_both = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package")

STREAMS = (
    "stream find --names",
    "stream find --empty -n",
    "stream find --empty -n --invert",
    "stream find --replicas 1 -n",
    "stream find --mirrored -n",
    "stream find --mirrored -n --invert",
    "stream find --sourced -n",
    "stream find --subject orders.1 -n",
    "stream find --subject 'orders.*' -n",
    "stream find --subject 'orders.*' -n --invert",
    "stream find --subject '>' -n",
    "stream find --server-name '^n[123]$' -n",
    "stream find --server-name nope -n",
    "stream find --cluster C -n",
    "stream find --cluster nope -n --invert",
    "stream find --leader nope -n --invert",
    "stream find --consumers 0 -n",
    "stream find --idle 10h -n",
    "stream find --created 1ns -n",
    "stream find --created 1ns -n --invert",
    "stream find --api-level 1 -n",
    """stream find -n --expression 'state.messages > 1 && config.name matches "^O"'""",
    """stream find -n --expression 'any(config.subjects, # startsWith "one")'""",
    "stream gaps ONE",
    "stream gaps ORDERS",
    "stream gaps ORDERS -f --json",
    "stream get ORDERS 1 --translate 'tr a-z A-Z'",
    "stream view ORDERS --since 1h",
    "stream cluster cancel-move ORDERS",
    "stream cluster evacuate ORDERS",
    "stream cluster evacuate ONE nope",
    "stream cluster balance --subject nope",
    "consumer find ORDERS",
    "consumer find ORDERS --push",
    "consumer find ORDERS --pull --push",
    "consumer find ORDERS --pending 100",
    "consumer find ORDERS --pending 100 --invert",
    "consumer find ORDERS --bound --invert",
    "consumer find ORDERS --pinned",
    "consumer find ORDERS --idle 1h",
    "consumer find ORDERS --leader nope --invert",
    "consumer find ORDERS --created 1ns",
    "consumer find ORDERS --replicas 3",
    """consumer find ORDERS --expression 'config.durable_name == "PULL"'""",
)
PASSED = re.compile(r"\b\d+(\.\d+)?(µs|ms|s)\b|^\d\d:\d\d:\d\d |WARNING: Det.*\n\n")


@pytest.fixture
def filled(run: Run, publish: Callable[..., None]) -> Run:
    """Four messages, of which one is gone, and a consumer that has seen none."""
    for words in (
        ("ORDERS", "--subjects", "orders.*", "--replicas", "3"),
        ("ONE", "--subjects", "one"),
        ("MIRROR", "--mirror", "ORDERS"),
    ):
        assert run("stream", "add", *words, "--defaults").code == 0
    for number in range(4):
        publish(f"orders.{number}", b"hello")
    assert run("stream", "rmm", "ORDERS", "2", "-f").code == 0
    assert run("consumer", "add", "ORDERS", "PULL", "--pull", "--defaults").code == 0
    return run


@nats_tool.needed
def test_answers_are_the_same(filled: Run, server: Server) -> None:
    found = nats_tool.differences(
        filled, STREAMS, url=server.url, normal=lambda text: PASSED.sub("", text).lstrip("\n")
    )
    assert not found, "\n\n".join(found)


@of_both
def test_streams_and_consumers_are_found(run: Run) -> None:
    assert run("stream", "find", "--expression", "1").code == 1
    assert run("stream", "find", "--expression", "1 == 1").code == 0
    for name, replicas in (("A", "3"), ("B", "1")):
        run("stream", "add", name, "--subjects", f"{name}.>", "--replicas", replicas, "--defaults")
    assert run("consumer", "find", "A", "--expression", "'a'").code == 1
    run("consumer", "add", "A", "C", "--pull", "--defaults")
    assert run("stream", "find", "-n").out == "A\nB\n"
    assert run("stream", "find", "-n", "--replicas", "1").out == "B\n"
    assert run("stream", "find", "-n", "--server-name", "n1|n2|n3", "--subject", "A.1.*").out == ""
    rows = json.loads(run("stream", "find", "--subject", "A.>", "-o", "json").out)
    assert [row["name"] for row in rows] == ["A"]
    assert run("consumer", "find", "A", "--pull", "-o", "json").out == '[\n  "C"\n]\n'
    for words in (("stream", "find"), ("consumer", "find", "A")):
        wrong = run(*words, "--expression", "1 +")
        assert (wrong.code, "unexpected end" in wrong.err) == (1, True)
        assert "does not give true or false" in run(*words, "--expression", "1").err


@of_both
def test_gaps_of_a_stream(run: Run, publish: Callable[..., None]) -> None:
    run("stream", "add", "G", "--subjects", "g", "--defaults")
    assert run("stream", "gaps", "G").out == "No deleted messages in G\n"
    for _ in range(9):
        publish("g", b"x")
    for seq in ("2", "3", "5", "8"):
        assert run("stream", "rmm", "G", seq, "-f").code == 0
    assert json.loads(run("stream", "gaps", "G", "-f", "--json").out) == [[2, 3], [5, 5], [8, 8]]
    assert "3 gaps found in Stream G" in run("stream", "gaps", "G", "-f").out
    assert run("stream", "gaps", "G").code == 1


@of_both
def test_a_stream_leaves_a_server(run: Run) -> None:
    run("stream", "add", "E", "--subjects", "e", "--replicas", "1", "--defaults")
    leader = json.loads(run("stream", "info", "E", "-j").out)["cluster"]["leader"]
    result = run("stream", "cluster", "evacuate", "E", leader, "-f")
    assert result.code == 0, result.err
    assert f'Requested evacuation of peer "{leader}"' in result.err
    peers = result.out.strip().removeprefix("Stream peers are now: ").split(", ")
    assert leader not in peers
    assert json.loads(run("stream", "info", "E", "-j").out)["cluster"]["leader"] in peers


@pytest.mark.parametrize(
    ("pattern", "subject", "so"),
    [
        *((">", "a", True), ("a.>", "a", False), ("a.>", "a.*", True), ("a.*", "a.>", False)),
        *(("a.*", "a.b", True), ("a.b", "a.*", False), ("a.b", "a.b.c", False), ("*", ">", False)),
    ],
)
def test_subjects_cover_others(pattern: str, subject: str, so: bool) -> None:
    assert covers(pattern, subject) is so


def test_numbers_become_ranges() -> None:
    assert ranges([1, 2, 3, 7, 9, 10]) == [(1, 3), (7, 7), (9, 10)]
    assert ranges([]) == []


def test_fair_shares_of_connections() -> None:
    held = [
        Held(ServerInfo(id=server), ConnInfo(cid=cid))
        for server, count in (("A", 7), ("B", 1))
        for cid in range(count)
    ]
    assert [(one.server.id, one.info.cid) for one in over_fair_share(held, 4)] == [
        ("A", cid) for cid in range(5)
    ]
    assert over_fair_share(held[7:], 1) == over_fair_share([], 0) == []


@of_both
def test_connections_are_balanced(run: Run, server: Server) -> None:
    system = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    server.cluster.wait_meta_leader()
    balance = ("server", "cluster", "balance", "1ms", "--force")
    assert "Balanced" in run(*system, *balance, "--account", "$SYS").out
    none = run(*system, *balance, "--server-name", "nope")
    assert (none.code, "no server matches" in none.err) == (1, True)
    ordinary = run(*balance)
    assert (ordinary.code, "has system privileges" in ordinary.err) == (1, True)
    assert "can only filter by subject" in run(*system, *balance, "--subject", "x").err
    assert run(*system, "server", "cluster", "balance", "xx", "-f").err.startswith(
        "jsctl: error: duration: "
    )


@of_both
def test_numbers_among_the_arguments_are_checked(run: Run) -> None:
    run("stream", "add", "N", "--subjects", "n", "--defaults")
    result = run("stream", "get", "N", "first")
    assert result.err == "jsctl: error: id: expected a whole number, got 'first'\n"
