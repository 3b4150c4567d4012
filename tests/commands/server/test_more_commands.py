"""Reports on the network, load and health of servers; requests to single ones; their accounts."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.client.connection import connect
from jsctl.client.facts import connection_facts
from jsctl.settings import Context, Settings
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server

Run = Callable[..., Result]
ENABLED = ["nats-server", "jsctl"]
NAMES = ["n1", "n2", "n3"]
of_both = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package")


@pytest.fixture
def system(run: Run, server: Server) -> Run:
    """Command lines of the system account."""
    server.cluster.wait_meta_leader()
    return lambda *words: run("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD, *words)


def id_of(system: Run, name: str) -> str:
    lines = system("server", "ping", "3", "--id").out.splitlines()
    return next(line.split()[0] for line in lines if line.split()[1:2] == [name])


@of_both
def test_report_routes(system: Run) -> None:
    result = system("server", "report", "routes")
    assert (result.code, result.err) == (0, "")
    assert "Cluster Report" in result.out
    rows = json.loads(system("server", "report", "route", "--sort", "name", "-o", "json").out)
    assert {(row["server"], row["name"]) for row in rows} == {
        (one, other) for one in NAMES for other in NAMES if one != other
    }
    names = [row["name"] for row in rows]
    assert names == sorted(names)
    back = json.loads(system("server", "report", "routes", "-R", "-o", "json").out)
    assert [row["server"] for row in back] == sorted((row["server"] for row in rows), reverse=True)


@of_both
def test_connections_by_expression(system: Run) -> None:
    report = ("server", "report", "connections", "--account", "$SYS", "-o", "json", "--filter")
    own = json.loads(system(*report, 'conn.name == "jsctl" && server.cluster == "C1"').out)
    assert [row["name"] for row in own] == ["jsctl"]
    none = system(*report, "conn.in_msgs < 0")
    assert (none.code, "did not get results" in none.err) == (1, True)
    assert "unexpected end" in system(*report, "1 +").err
    assert "at the same time" in system(*report, "true", "--closed-reason", "x").err


@of_both
@pytest.mark.parametrize("kind", ["cpu", "mem"])
def test_report_load(kind: str, system: Run) -> None:
    values = json.loads(system("server", "report", kind, "-j").out)
    assert sorted(values) == NAMES
    lines = system("server", "report", kind).out.splitlines()
    assert lines[0] == {"cpu": "CPU Usage", "mem": "Memory Usage"}[kind]
    assert sorted(line.split(":")[0].strip() for line in lines[2:]) == NAMES
    csv = system("server", "report", kind, "--host", "n2", "-o", "csv").out
    assert csv.splitlines()[0] == f"server,{kind}"
    assert csv.splitlines()[1].startswith("n2,")


@of_both
def test_report_health(system: Run) -> None:
    result = system("server", "report", "health")
    assert "│ 3      │ 1       │        │ ok: 3 / err: 0 │" in result.out, result.err
    named = ("--account", "$G", "--stream", "NOPE")
    found = json.loads(system("server", "report", "health", *named, "-o", "json").out)
    assert {one["health"]["status_code"] for one in found} == {404}


@of_both
def test_report_networks_that_are_not_there(system: Run) -> None:
    assert "Leafnode Report" in system("server", "report", "leafnodes").out
    result = system("server", "report", "gateways", "--sort", "server")
    assert "│ n3     │ C1   │    0 │" in result.out, result.err
    assert json.loads(system("server", "report", "super", "-o", "json").out) == []


def test_report_downgrade(run: Run, system: Run) -> None:
    run("stream", "add", "NEW", "--subjects", "n", "--allow-msg-ttl", "--defaults")
    run("stream", "add", "OLD", "--subjects", "o", "--defaults")
    run("consumer", "add", "NEW", "C", "--pull", "--defaults")
    report = ("server", "report", "downgrade")
    assert "All assets are compatible" in system(*report, "1").out
    found = json.loads(system(*report, "0", "--json").out)
    assert found == {"streams": [{"account": "$G", "name": "NEW", "api_level": 1}]}
    assert "│ $G      │ NEW*   │ C " in system(*report, "0", "--all").out
    assert "expected a whole number" in system(*report, "x").err


def test_requests_of_raft_and_queues(system: Run) -> None:
    for kind, key in (("ipqueue", "JetStream API queue"), ("raft", "$SYS")):
        found = json.loads(system("server", "request", kind, "--name", "n2").out)
        assert (found["server"]["name"], key in found["data"]) == ("n2", True)


def test_profiles_become_files(system: Run, tmp_path: Path) -> None:
    result = system("server", "request", "profile", "heap", str(tmp_path), "--name", "n1")
    assert (result.code, result.err) == (0, "")
    (written,) = tmp_path.iterdir()
    assert result.out == f'Server "n1" profile written: {written}\n'
    assert written.name.startswith("heap-20") and written.name.endswith("-n1")
    assert (written.stat().st_mode & 0o777, written.read_bytes()[:2]) == (0o600, b"\x1f\x8b")
    assert system("server", "request", "profile", "heap", str(tmp_path / "no")).code == 1


@of_both
def test_kick_closes_a_connection(system: Run, server: Server) -> None:
    settings = Settings(connection=Context(url=server.cluster.urls[0]))

    async def kicked() -> tuple[Result, bool]:
        gone = asyncio.Event()
        async with connect(settings, lambda text: gone.set()) as client:
            facts = await connection_facts(client, settings.timeout)
            words = ("server", "request", "kick", str(facts.client_id), facts.server_id)
            result = await asyncio.to_thread(system, *words)
            async with asyncio.timeout(10):
                await gone.wait()
        return result, gone.is_set()

    result, gone = asyncio.run(kicked())
    assert (result.code, gone) == (0, True)
    assert json.loads(result.out)["server"]["name"] in NAMES
    assert "expected a whole number" in system("server", "request", "kick", "x", "y").err


@of_both
def test_account_as_a_server_knows_it(system: Run) -> None:
    result = system("server", "account", "info", "$G")
    assert result.out.startswith("Account information for account $G\n\nDetails:\n")
    assert "JetStream: true" in result.out
    found = json.loads(system("server", "account", "info", "$G", "-j").out)
    assert found["account_name"] == "$G"
    assert system("server", "account", "info", "NOPE").code == 1


@of_both
def test_reload_of_a_server(system: Run) -> None:
    server = id_of(system, "n2")
    asked = system("server", "config", "reload", server)
    error, hint = asked.err.splitlines()
    assert error == "jsctl: error: cannot ask for confirmation without a terminal"
    assert hint == "  --force skips the question"
    wrong = system("server", "config", "reload", "a.b", "-f")
    assert wrong.err.startswith("jsctl: error: 'a.b' is no server ID\n  `jsctl server ping --id`")
    result = system("server", "config", "reload", server, "-f")
    if result.code == 0:
        assert result.out.startswith(f"Server information for n2 ({server})\n")
    else:  # there are options that were given on the command line, and the file lacks
        assert result.err.startswith("jsctl: error: reload failed: ")
