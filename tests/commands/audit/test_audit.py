"""Archives of audits: what is written can be read, what is damaged is refused, rules see issues."""

import json
import os
import pwd
import re
import shlex
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.commands.audit.examples import replicas
from jsctl.commands.toolkit.archives.files import MANIFEST, BadName, Reader, Writer, path_of
from jsctl.errors import JsctlError, UsageError
from tests.commands.conftest import Result
from tests.support.nats_process import real_server
from tests.support.real_cli import Answer, differences, nats, needs_nats

Run = Callable[..., Result]
SERVERS = ("n1", "n2")
NOW = "2026-11-23T06:00:00Z"
READING = (
    "audit analyze {bad}",
    "audit analyze {bad} --max-examples 1",
    "audit analyze {bad} --max-examples 0",
    "audit analyze {bad} --skip server_001 --skip CLUSTER_001",
    "audit analyze {bad} --markdown",
    "audit analyze {empty}",
    "audit analyze {bad} --save {saved}",
    "audit analyze --load {good}",
    "audit analyze",
    "audit analyze /nope.zip",
    "audit checks",
    "audit checks --json",
)


def write(path: Path, documents: list[tuple[dict[str, str], object]]) -> Path:
    writer = Writer(path)
    for tags, document in documents:
        writer.add(document, tags)
    writer.add({"version": "v", "capture_timestamp": NOW}, {"special": "audit_gather_metadata"})
    writer.finish()
    return path


def troubled() -> list[tuple[dict[str, str], object]]:
    """Two servers with something wrong in nearly every respect."""
    found: list[tuple[dict[str, str], object]] = []
    for at, server in enumerate(SERVERS):
        where = {"server": server, "cluster": "a b"}

        def add(kind: str, data: object, where: dict[str, str] = where) -> None:
            tags = {**where, "artifact_type": kind}
            found.append((tags, {"server": {"name": where["server"]}, "data": data}))

        add(
            "variables",
            {
                "version": f"2.1{at}.0",
                "mem": 1024 * (1 + 9 * at),
                "cores": 2,
                "cpu": 199.0 * at,
                "slow_consumers": at,
                "now": NOW,
                "tls_cert_not_after": "2026-11-20T00:00:00Z" if at else "2026-12-01T06:00:00Z",
                "leaf": {"tls_cert_not_after": "2026-11-25T06:00:00Z"},
            },
        )
        gateway = {"configured": True}
        outbound = {"east": gateway, "west": {"configured": not at}}
        add("gateways", {"outbound_gateways": outbound, "inbound_gateways": {"east": [gateway]}})
        add("health", {"status": "ok" if at else "unavailable", "status_code": 503})
        add("leafs", {"leafs": [{"name": "leaf 1"}] if at else []})
        add(
            "jetstream_info",
            {
                "ha_assets": 1001 * at,
                "memory": 95,
                "storage": 10,
                "config": {"max_memory": 100, "max_storage": 100, "domain": "d e"},
                "meta_cluster": {"leader": server, "replicas": [{"name": "n3", "offline": True}]},
            },
        )
        stream = {
            "name": "S",
            "config": {"name": "S", "max_msgs": 100, "max_bytes": 1000, "max_consumers": 2},
            "state": {
                "messages": 95,
                "bytes": 10,
                "last_seq": 100 - 50 * at,
                "num_subjects": 2_000_000,
                "consumer_count": 2,
            },
            "cluster": {"name": "a b", "leader": "n1"},
        }
        found.append(
            ({"account": "APP", **where, "stream": "S", "artifact_type": "stream_info"}, stream)
        )
    return found


@pytest.fixture
def archives(tmp_path: Path) -> dict[str, str]:
    """One with troubles, one with nothing in it; a place for a report, and a report."""
    bad = write(tmp_path / "bad.zip", troubled())
    empty = write(tmp_path / "empty.zip", [])
    good = tmp_path / "report.json"
    assert main(["audit", "analyze", str(bad), "--save", str(good)]) == 0
    return {"bad": str(bad), "empty": str(empty), "saved": str(tmp_path / "s"), "good": str(good)}


@needs_nats
@pytest.mark.processes
def test_both_tools_see_the_same_issues(cli: Run, archives: dict[str, str]) -> None:
    pairs: list[tuple[str, Answer, Answer]] = []
    for line in READING:
        words = shlex.split(line.format(**archives))
        theirs = nats(*words)
        Path(archives["saved"]).unlink(missing_ok=True)
        ours = cli(*words)
        pair = [Answer(one.code, _in_order(one.out), one.err) for one in (theirs, ours)]
        pairs.append((line, pair[0], pair[1]))
    told = differences(pairs)
    assert not told, told


def _in_order(out: str) -> str:
    """`nats` counts outcomes and compares gateways in an order of chance; markdown has a time."""
    head, mark, counts = out.partition("Summary of Checks:")
    head = re.sub(r"produced .*|(?<=outbound gateways) .*(?=\n)", "", head)
    return head + mark + "\n".join(sorted(counts.splitlines()))


def test_what_checks_read_and_lack_is_logged(cli: Run, tmp_path: Path) -> None:
    lacking = [one for one in troubled() if one[0]["artifact_type"] != "health"]
    path = str(write(tmp_path / "lacking.zip", lacking))
    quiet, told = cli("audit", "analyze", path), cli("audit", "analyze", path, "--verbose")
    assert (told.code, told.out, quiet.err) == (quiet.code, quiet.out, "")
    lines = [line.partition(" ")[2] for line in told.err.splitlines()]
    assert "SERVER_002: 2 documents read" in lines
    assert "SERVER_002: FAIL, 2 issues" in lines
    assert "SERVER_001: no health of cluster a b, server n1" in lines


@needs_nats
@pytest.mark.processes
def test_the_real_tool_shows_a_report_of_ours(archives: dict[str, str]) -> None:
    done = nats("audit", "analyze", "--load", archives["good"])
    assert (done.code, "[FAIL] [META_001]" in done.out) == (0, True)


def test_every_rule_but_those_of_metadata_finds_its_issue(
    archives: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["audit", "analyze", archives["bad"], "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["checks"]
    fine = {one["check"]["code"] for one in results if one["outcome_string"] == "PASS"}
    assert fine == {"ACCOUNTS_001", "JETSTREAM_004", "JETSTREAM_005"}
    assert stat.S_IMODE(Path(archives["good"]).stat().st_mode) == 0o600


def test_limits_of_accounts_are_those_of_their_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tags = {"account": "APP", "server": "n1", "cluster": "C", "artifact_type": "account_info"}
    limits = {"nats": {"limits": {"conn": 10, "subs": 10, "leaf": -1}}}
    data = {"client_connections": 11, "subscriptions": 10, "decoded_jwt": limits}
    path = write(tmp_path / "a.zip", [(tags, {"data": data})])
    assert main(["audit", "analyze", str(path)]) == 0
    out = capsys.readouterr().out
    assert "[FAIL] [ACCOUNTS_001]" in out
    assert "account APP (on n1) exceeded client connections limit (110.0%, 11/10)" in out
    assert "account APP (on n1) using 100.0% of subscriptions limit (10/10)" in out


def monitored(**metadata: str) -> dict[str, str]:
    return {f"io.nats.monitor.{key.replace('_', '-')}": value for key, value in metadata.items()}


def watched() -> list[tuple[dict[str, str], object]]:
    """Three streams: one as it should be, one with too little, one that nobody watches."""
    found: list[tuple[dict[str, str], object]] = []
    for name, metadata, pending in (
        ("FINE", monitored(enabled="true", msgs_critical="5", msgs_warn="7"), 1),
        ("FEW", monitored(enabled="true", msgs_critical="500", subjects_warn="7"), 9),
        ("FREE", monitored(msgs_critical="500"), 99),
    ):
        where = {"account": "APP", "stream": name, "server": "n1", "cluster": "C"}
        config = {"name": name, "metadata": metadata}
        limits = {key: value for key, value in metadata.items() if key.endswith("enabled")}
        watching = monitored(outstanding_ack_critical="5", redelivery_critical="3")
        consumer = {
            "name": "C",
            "stream_name": name,
            "num_ack_pending": pending,
            "config": {"name": "C", "metadata": {**watching, **limits}},
        }
        state = {"messages": 100, "first_seq": 1, "last_seq": 100, "num_subjects": 3}
        document = {"config": config, "state": state, "consumer_detail": [consumer]}
        found.append(({**where, "artifact_type": "stream_info"}, document))
    return found


def test_thresholds_in_metadata_are_judged(cli: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "w.zip", watched())
    out = cli("audit", "analyze", str(path)).out
    for code in ("JETSTREAM_004", "JETSTREAM_005"):
        assert f"[FAIL] [{code}]" in out
    assert "CRITICAL: stream FEW in APP: 100 messages" in out
    assert "CRITICAL: consumer C in stream FEW in APP: Ack Pending: 9" in out
    assert "stream FINE" not in out
    assert "FREE" not in out
    bad = watched()
    document = bad[0][1]
    assert isinstance(document, dict)
    document["config"]["metadata"] = monitored(enabled="true", msgs_critical="many")
    out = cli("audit", "analyze", str(write(tmp_path / "b.zip", bad))).out
    assert "io.nats.monitor.msgs-critical cannot be used: 'many'" in out


@needs_nats
@pytest.mark.processes
def test_thresholds_in_metadata_are_judged_alike(cli: Run, tmp_path: Path) -> None:
    path = str(write(tmp_path / "w.zip", watched()))
    outs = [run("audit", "analyze", path).out for run in (nats, cli)]
    issues = [
        [line for line in out.splitlines() if "CRITICAL:" in line or "WARNING:" in line]
        for out in outs
    ]
    assert issues[0] == issues[1] != []
    assert [one.count("[FAIL] [JETSTREAM_00") for one in outs] == [2, 2]


def test_what_is_no_report_is_not_shown(archives: dict[str, str], tmp_path: Path) -> None:
    assert main(["audit", "analyze", "--load", archives["bad"]]) == 1
    assert main(["audit", "analyze", "--load", str(tmp_path / "nope")]) == 1
    (tmp_path / "other").write_text('{"type": "other"}')
    assert main(["audit", "analyze", "--load", str(tmp_path / "other")]) == 1


def test_a_report_is_not_overwritten_unasked(archives: dict[str, str]) -> None:
    before = Path(archives["good"]).read_bytes()
    assert main(["audit", "analyze", archives["empty"], "--save", archives["good"]]) == 1
    assert Path(archives["good"]).read_bytes() == before
    words = ["audit", "analyze", archives["empty"], "--save", archives["good"], "-f"]
    assert main(words) == 0


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b"])
def test_names_cannot_leave_the_archive(name: str) -> None:
    with pytest.raises(BadName):
        path_of({"server": name, "cluster": "C", "artifact_type": "health"}, 1)


def test_pages_of_one_document_follow_each_other(tmp_path: Path) -> None:
    tags = {"server": "n1", "cluster": "C", "artifact_type": "connections"}
    reader = Reader(write(tmp_path / "p.zip", [(tags, {"page": page}) for page in range(3)]))
    assert list(reader.each(**tags)) == [{"page": 0}, {"page": 1}, {"page": 2}]


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    for content in (b"", b"PK nothing"):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="failed to open archive"):
            Reader(path)
    for manifest in ("[]", "{", '{"capture/a": []}', '{"capture/a": 1}'):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(MANIFEST, manifest)
        with pytest.raises(UsageError):
            Reader(path)


@pytest.mark.parametrize("flag", [0x1, None], ids=["with a password", "packed in a way of its own"])
def test_archives_that_cannot_be_unpacked_are_refused(tmp_path: Path, flag: int | None) -> None:
    path = write(tmp_path / "x.zip", [])
    content = bytearray(path.read_bytes())
    for mark, flags, method in ((b"PK\x03\x04", 6, 8), (b"PK\x01\x02", 8, 10)):
        at = -1
        while (at := content.find(mark, at + 1)) >= 0:
            content[at + (flags if flag else method)] = flag or 97
    path.write_bytes(content)
    with pytest.raises(UsageError, match="failed to decode file"):
        Reader(path)


ODD_NUMBERS = ("1e999", "NaN", "1" + "0" * 400, "1e300", '"\\ud800"')


@pytest.mark.parametrize("odd", ODD_NUMBERS)
def test_numbers_and_texts_that_no_server_tells_end_in_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], odd: str
) -> None:
    where = {"server": "n1", "cluster": "C"}
    stream = {"account": "A", "stream": "S", **where, "artifact_type": "stream_info"}
    of_a_server = [
        "ha_assets",
        "memory",
        "status_code",
        "mem",
        "cpu",
        "cores",
        "slow_consumers",
        "status",
    ]
    data: dict[str, object] = {key: "ODD" for key in of_a_server}
    data["config"] = {"max_memory": "ODD"}
    kinds = ("jetstream_info", "variables", "health")
    documents: list[tuple[dict[str, str], object]] = [
        ({**where, "artifact_type": kind}, {"data": data}) for kind in kinds
    ]
    state = {"messages": "ODD", "last_seq": "ODD", "num_subjects": "ODD"}
    documents.append((stream, {"state": state, "config": {"max_msgs": "ODD"}}))
    source, path = write(tmp_path / "a.zip", documents), tmp_path / "odd.zip"
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            after.writestr(name, before.read(name).replace(b'"ODD"', odd.encode()))
    assert main(["audit", "analyze", str(path)]) in (0, 1)
    report = tmp_path / "report"
    outcomes = {"PASS": "x", "FAIL": 1, "WARN": [], "SKIP": 1}
    metadata = {"capture_timestamp": "0001-01-01T00:00:00+23:00", "user_name": "ODD"}
    for told in (metadata, {"capture_timestamp": "today"}):
        document = {"type": "io.nats.audit.v1.analysis", "outcomes": outcomes, "metadata": told}
        report.write_text(json.dumps(document).replace('"ODD"', odd))
        for form in ((), ("--markdown",), ("-o", "json"), ("-o", "csv")):
            assert main(["audit", "analyze", "--load", str(report), *form]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


def test_what_servers_say_moves_no_cursor(tmp_path: Path, cli: Run) -> None:
    where = {"server": "n1", "cluster": "C", "artifact_type": "health"}
    path = write(tmp_path / "e.zip", [(where, {"data": {"status": "bad\x1b[2J\n|"}})])
    for words in ((), ("--markdown",)):
        out = cli("audit", "analyze", str(path), *words).out
        assert ("\x1b" in out, "bad\\x1b[2J\\n" in out) == (False, True)


def test_many_streams_are_looked_up_one_by_one(tmp_path: Path) -> None:
    """Rules ask for each stream and each of its servers: not by a look at all files each time."""
    looked = 0

    class Counted(dict[str, str]):
        def items(self):  # type: ignore[no-untyped-def] # counts
            nonlocal looked
            looked += 1
            return super().items()

    streams = 300
    reader = Reader(
        write(
            tmp_path / "m.zip",
            [
                (
                    {
                        **{"account": "A", "cluster": "C", "artifact_type": "stream_info"},
                        "stream": f"S{at}",
                        "server": server,
                    },
                    {"name": f"S{at}"},
                )
                for at in range(streams)
                for server in SERVERS
            ],
        )
    )
    reader._tags = {path: Counted(tags) for path, tags in reader._tags.items()}
    found = list(replicas(reader))
    assert [len(told) for _, _, told in found] == [len(SERVERS)] * streams
    assert looked < 20 * streams


def test_an_archive_for_a_device_takes_no_place(tmp_path: Path) -> None:
    target = tmp_path / "null"
    target.symlink_to(os.devnull)
    writer = Writer(target)
    writer.add({"a": 1}, {"special": "x"})
    writer.finish()
    assert list(tmp_path.iterdir()) == [target] and target.is_symlink()


def test_nothing_is_left_of_an_archive_that_fails(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.zip")
    writer.add({}, {"special": "x"})
    writer.discard()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(JsctlError, match="failed to create archive"):
        Writer(tmp_path / "no" / "a.zip")


@pytest.mark.processes
def test_a_server_is_gathered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # as in a container
    config = tmp_path / "server.conf"
    config.write_text(
        "accounts {\n  SYS { users [{user: s, password: s}] }\n"
        "  APP {\n    jetstream: enabled\n    users [{user: a, password: a}]\n  }\n}\n"
        "system_account: SYS\n"
    )
    target = str(tmp_path / "a.zip")
    with real_server(tmp_path, "-c", config) as url:
        app = ["-s", url, "--user", "a", "--password", "a"]
        assert main([*app, "stream", "add", "S", "--subjects", "s", "--defaults"]) == 0
        system = ["-s", url, "--user", "s", "--password", "s"]
        words = ["audit", "gather", "-o", target, "--no-server-profiles", "--no-progress"]
        assert main([*system, *words]) == 0
        assert main([*app, "audit", "gather", "-o", f"{target}.2", "--no-progress"]) == 1
        assert main([*system, "audit", "gather", "--cpu-profile-duration", "16s"]) == 1
    assert not Path(f"{target}.2").exists()
    assert stat.S_IMODE(Path(target).stat().st_mode) == 0o600
    reader = Reader(Path(target))
    assert reader.names("stream", account="APP") == ["S"]
    assert len(reader.names("artifact_type")) == 18
    assert reader.metadata()["version"]
    assert reader.metadata()["user_name"] == str(os.getuid())
    capsys.readouterr()
    assert main(["audit", "analyze", target]) == 0
    ours = capsys.readouterr().out
    assert "[PASS] [SERVER_001]" in ours


def test_a_profile_of_a_server_that_does_not_say_who_it_is(cli: Run, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.zip")
    where = {"server": "n1", "cluster": "c"}
    document = {"server": {"name": "n1", "cluster": "c"}, "data": {}}
    writer.add(document, {**where, "artifact_type": "variables"})
    tags = {**where, "artifact_type": "profile", "profile_name": "heap"}
    writer.add_bytes(b"profile", "prof", tags)
    writer.finish()
    target = tmp_path / "made"
    target.mkdir()
    words = ("server", "request", "profile", "heap", str(target), "--archive")
    done = cli(*words, str(tmp_path / "a.zip"))
    assert done.code == 0, done.err
    (written,) = target.iterdir()
    assert written.read_bytes() == b"profile"
