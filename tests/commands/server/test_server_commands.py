"""`jsctl server` and `jsctl account` against clusters of both kinds of server."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server
from tests.support.waiting import wait_for

Run = Callable[..., Result]
ENABLED = ["nats-server", "jsctl"]
pytestmark = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package")
NAMES = ["n1", "n2", "n3"]
JSZ = "$SYS.REQ.SERVER.PING.JSZ"
NO_RIGHTS = "ensure the account used has system privileges and appropriate permissions"


@pytest.fixture
def system(run: Run) -> Run:
    """Command lines of the system account."""

    def as_system(*words: str) -> Result:
        return run("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD, *words)

    ping = ("server", "ping", "3", "--timeout", "3s")
    wait_for(lambda: "3 replies" in as_system(*ping).out, "all servers know each other")
    return as_system


@pytest.fixture
def ports(server: Server, cli: Run) -> Run:
    """Command lines that use the monitoring ports."""
    flags = [word for broker in server.cluster for word in ("--monitor", broker.monitor_url)]
    return lambda *words: cli(*flags, *words)


def documents(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_list_has_all_servers_and_clusters(system: Run) -> None:
    result = system("server", "list")
    assert result.code == 0, result.err
    assert "Server Overview" in result.out
    assert "│ C1      │          3 │" in result.out
    rows = json.loads(system("server", "ls", "--sort", "name", "-o", "json").out)
    assert [row["name"] for row in rows] == NAMES
    assert {row["jetstream"] for row in rows} == {"yes"}
    found = json.loads(system("srv", "ls", "-j").out)
    assert sorted(one["server"]["name"] for one in found) == NAMES
    assert all("mem" in one["statsz"] for one in found)


def test_list_from_monitoring_ports_is_the_same_table(ports: Run) -> None:
    rows = json.loads(ports("server", "ls", "--sort", "name", "-R", "-o", "json").out)
    assert [row["name"] for row in rows] == NAMES[::-1]
    assert all(row["cluster"] == "C1" and row["routes"] > 0 for row in rows)


def test_ping_and_what_is_missing(system: Run) -> None:
    lines = system("server", "ping").out.splitlines()
    assert sorted(line.split()[0] for line in lines[:3]) == NAMES
    assert lines[4] == "---- ping statistics ----"
    assert lines[5].startswith("3 replies max: ")
    late = system("server", "ping", "4", "--timeout", "2s")
    assert (late.code, late.out.splitlines()[-1]) == (0, "Missing 1 server(s)")


def test_info_of_a_server(system: Run) -> None:
    out = system("server", "info", "n2").out
    assert out.startswith("Server information for n2 (N")
    for section in ("Process Details:", "JetStream:", "Limits:", "Statistics:", "Cluster:"):
        assert f"\n{section}\n" in out
    server_id = out.partition("(")[2].partition(")")[0]
    assert json.loads(system("server", "info", server_id, "-j").out)["server_name"] == "n2"
    unknown = system("server", "info", "nope", "--timeout", "1s")
    assert unknown.code == 1
    assert unknown.err == f"jsctl: error: no results received, {NO_RIGHTS}\n"


@pytest.mark.parametrize("source", ["system", "ports"])
def test_report_jetstream_has_servers_and_meta_group(
    source: str, server: Server, request: pytest.FixtureRequest
) -> None:
    ask: Run = request.getfixturevalue(source)
    leader = server.cluster.wait_meta_leader()
    result = ask("server", "report", "jetstream")
    heads = next(line for line in result.out.splitlines() if "Server" in line)
    assert heads.split("│")[-3:-1] == [" Quorum Sz ", " Rescuing "]
    first = next(line for line in result.out.splitlines() if "│ n1" in line)
    assert [cell.strip() for cell in first.split("│")[-3:-1]] == ["2", "false"]
    assert result.code == 0, result.err
    assert "JetStream Summary" in result.out
    assert f"│ {leader}*    │ C1" in result.out
    assert "RAFT Meta Group Information - Lead cluster: C1" in result.out
    found = json.loads(ask("server", "report", "jsz", "--sort", "name", "-o", "json").out)
    assert [row["name"] for row in found["servers"]] == NAMES
    assert [row["name"] for row in found["servers"] if row["meta_leader"]] == [leader]
    peers = found["meta"][0]["peers"]
    assert [peer["name"] for peer in peers] == NAMES
    assert [peer["name"] for peer in peers if peer["leader"]] == [leader]
    assert all(peer["online"] and len(peer["peer"]) == 8 for peer in peers)


def test_report_jetstream_of_one_server_or_account(run: Run, system: Run) -> None:
    assert run("stream", "add", "A", "--subjects", "a", "--replicas", "3", "--defaults").code == 0
    out = system("server", "report", "js", "--host", "n1").out
    assert "│ n1" in out
    assert "n2" not in out
    assert "RAFT Meta" not in out
    found = json.loads(system("server", "report", "js", "--account", "$G", "-o", "json").out)
    assert [row["streams"] for row in found["servers"]] == [1, 1, 1]
    leaders = system("server", "report", "js", "--leaders").out
    assert "Stream Leaders" in leaders
    assert "│ **********   │" in leaders


def test_report_connections_and_accounts(system: Run) -> None:
    out = system("server", "report", "connections").out
    assert "Top 1 Connections out of 1 by subs" in out
    assert "Connections per server" in out
    found = json.loads(system("server", "report", "conns", "-j").out)
    assert [(one["name"], one["account"]) for one in found] == [("jsctl", "$SYS")]
    assert found[0]["server"]["name"] in NAMES
    closed = system("server", "report", "conn", "--state", "closed", "--top", "2")
    assert "│ Reason" in closed.out
    assert "1 Accounts Overview" in system("server", "report", "accounts").out
    accounts = json.loads(system("server", "report", "acct", "-j").out)
    assert [(one["account"], one["connections"]) for one in accounts] == [("$SYS", 1)]
    none = system("server", "report", "accounts", "NONE", "--timeout", "1s")
    assert none.err.endswith("jsctl: error: did not get results from any servers\n")


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("variables",), "server_name"),
        (("varz",), "server_name"),
        (("connections", "--subscriptions"), "num_connections"),
        (("routes",), "num_routes"),
        (("subscriptions", "--detail"), "num_subscriptions"),
        (("gateways",), "outbound_gateways"),
        (("leafnodes",), "leafs"),
        (("accounts",), "accounts"),
        (("jetstream", "--all"), "account_details"),
        (("healthz",), "status"),
    ],
)
def test_requests_print_one_document_a_server(
    system: Run, ports: Run, words: tuple[str, ...], key: str
) -> None:
    found = documents(system("server", "request", *words).out)
    assert sorted(one["server"]["name"] for one in found) == NAMES
    assert all(key in one["data"] for one in found)
    one = documents(system("server", "req", *words, "--name", "n2").out)
    assert [document["server"]["name"] for document in one] == ["n2"]
    by_port = documents(ports("server", "req", *words).out)
    assert sorted(document["server"]["name"] for document in by_port) == NAMES


def test_request_to_the_meta_leader(system: Run, server: Server) -> None:
    leader = server.cluster.wait_meta_leader()
    for flag in ("--consumer", "--consumers"):
        words = ("server", "req", "jsz", "--accounts", "--streams", flag)
        assert system(*words).code == 0
    found = documents(system("server", "req", "jsz", "--leader").out)
    assert [one["server"]["name"] for one in found] == [leader]


def test_step_down_moves_the_meta_leader(system: Run, server: Server) -> None:
    old = server.cluster.wait_meta_leader()
    result = system("server", "raft", "step-down", "-j")
    assert result.code == 0, result.err
    assert f'Requesting leader step down of "{old}" in a 3 peer RAFT group' in result.err
    new = json.loads(result.out)["leader"]
    assert new != old
    assert f'New leader elected "{new}"\n' in result.err
    server.cluster.wait_meta_leader()
    wanted = next(name for name in NAMES if name != new)
    moved = system("server", "cluster", "sd", "--host", wanted)
    assert moved.err.endswith(f'New leader elected "{wanted}"\n')
    refused = system("server", "raft", "down", "--js-domain", "hub")
    assert refused.code == 1
    assert refused.err == 'jsctl: error: no servers responded in domain "hub"\n'


def test_peer_remove_asks_first(system: Run, server: Server) -> None:
    leader = server.cluster.wait_meta_leader()
    unknown = system("server", "raft", "peer-remove", "nope", "-f")
    assert unknown.err == "jsctl: error: did not find a replica named nope\n"
    assert system("server", "raft", "pr", leader, "-f").code == 1
    other = next(name for name in NAMES if name != leader)
    asked = system("server", "raft", "rm", other)
    assert asked.code == 1
    assert asked.err.startswith("Removing peers is intended for peers that will not come back")
    assert "cannot ask for confirmation without a terminal" in asked.err


def test_ordinary_accounts_are_told_why(run: Run) -> None:
    for words, text in (
        (("server", "ls"), f"no results received, {NO_RIGHTS}"),
        (("server", "report", "jsz"), f"{JSZ}: server request failed, {NO_RIGHTS}"),
        (("server", "raft", "step-down"), "server request failed, "),
    ):
        result = run(*words)
        assert result.code == 1
        assert result.err.startswith(f"jsctl: error: {text}"), result.err
    assert "ensure a system account is used" in run("server", "ping").err


def test_account_info(run: Run, system: Run) -> None:
    out = run("account", "info").out
    assert out.startswith("Account Information\n")
    assert "Account: $G ($G)\n" in out
    assert "\n\nJetStream Account Information:\n\nAccount Usage:\n\n" in out
    assert "\n  Tier: Default:\n\n      Configuration Requirements:\n\n" in out
    assert "\n      Stream Resource Usage Limits:\n\n" in out
    document = json.loads(run("a", "info", "-j").out)
    assert document["connection"]["server_name"] in NAMES
    assert document["jetstream"]["streams"] == 0
    found = system("account", "info").out
    assert "System Account: true\n" in found
    assert "Could not obtain account information: JetStream not enabled" in found


def test_account_report_shows_its_own_connections(run: Run) -> None:
    result = run("account", "report", "connections", "-j")
    assert result.code == 0, result.err
    assert {one["name"] for one in json.loads(result.out)} == {"jsctl"}
