"""`jsctl stream` against real servers: answers, messages, exit codes."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Result

Run = Callable[..., Result]


def add(run: Run, name: str, *more: str) -> Result:
    result = run("stream", "add", name, "--subjects", f"{name.lower()}.>", "--defaults", *more)
    assert result.code == 0, result.err
    return result


def info(run: Run, name: str) -> Any:
    result = run("stream", "info", name, "-j")
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_add_says_so_and_shows_the_stream(run: Run) -> None:
    result = add(run, "ORDERS", "--replicas", "3", "--description", "All orders")
    assert result.out.startswith(
        "Stream ORDERS was created\n\nInformation for Stream ORDERS created "
    )
    assert "                  Description: All orders\n" in result.out
    assert "                     Replicas: 3\n" in result.out
    assert "Cluster Information:" in result.out


def test_add_with_json_keeps_stdout_a_document(run: Run) -> None:
    result = add(run, "A", "-j")
    assert json.loads(result.out)["config"]["name"] == "A"
    assert result.err == "Stream A was created\n"


def test_an_info_screen_is_rows_for_programs_and_markdown_for_readers(run: Run) -> None:
    result = add(run, "A", "-o", "csv")
    assert result.err == "Stream A was created\n"
    head, *rows = csv.reader(result.out.splitlines())
    assert head == ["section", "name", "value"]
    assert [row for row in rows if row[1] in ("Subjects", "Maximum Messages")] == [
        ["", "Subjects", "a.>"],
        ["Limits", "Maximum Messages", "unlimited"],
    ]
    assert "- **Subjects:** a.>\n" in run("stream", "info", "A", "-o", "md").out
    told = run("stream", "subjects", "A", "-o", "csv")
    assert (told.out, told.err) == ("", "No subjects found matching >\n")


def test_every_flag_of_add_reaches_the_server(run: Run) -> None:
    add(
        run,
        "FULL",
        *("--storage", "memory", "--retention", "work", "--discard", "new"),
        *("--max-msgs", "100", "--max-bytes", "1MB", "--max-age", "1d", "--max-msg-size", "1K"),
        *("--max-msgs-per-subject", "5", "--dupe-window", "1m", "--max-consumers", "7"),
        *("--compression", "none", "--no-allow-direct", "--allow-msg-ttl", "--no-ack"),
        *("--metadata", "team=x", "--deny-delete", "--deny-purge", "--discard-per-subject"),
        *("--transform-source", "full.a", "--transform-destination", "full.b"),
        *("--republish-source", "full.>", "--republish-destination", "again.>"),
    )
    config = info(run, "FULL")["config"]
    assert config["storage"] == "memory"
    assert config["retention"] == "workqueue"
    assert config["discard"] == "new"
    assert (config["max_msgs"], config["max_bytes"]) == (100, 1024 * 1024)
    assert (config["max_age"], config["max_msg_size"]) == (86400 * 10**9, 1024)
    assert (config["max_msgs_per_subject"], config["max_consumers"]) == (5, 7)
    assert config["duplicate_window"] == 60 * 10**9
    assert (config["allow_direct"], config["allow_msg_ttl"], config["no_ack"]) == (
        False,
        True,
        True,
    )
    assert config["metadata"]["team"] == "x"
    assert (config["deny_delete"], config["deny_purge"]) == (True, True)
    assert config["subject_transform"] == {"src": "full.a", "dest": "full.b"}
    assert config["republish"] == {"src": "full.>", "dest": "again.>"}


def test_validate_and_output_create_nothing(run: Run, tmp_path: Path) -> None:
    result = run("stream", "add", "V", "--subjects", "v", "--defaults", "--validate")
    assert result.out.endswith("matching io.nats.jetstream.api.v1.stream_configuration\n")
    target = tmp_path / "v.json"
    assert (
        run("stream", "add", "V", "--subjects", "v", "--defaults", "--output", str(target)).out
        == ""
    )
    assert target.stat().st_mode & 0o777 == 0o600
    assert run("stream", "ls", "-n").out == ""
    assert run("stream", "add", "--config", str(target)).code == 0
    assert info(run, "V")["config"]["subjects"] == ["v"]


def test_ls_in_its_forms(run: Run) -> None:
    assert run("stream", "ls").out == "No Streams defined\n"
    add(run, "B")
    add(run, "KV_A")
    assert run("stream", "ls", "-n").out == "B\nKV_A\n"
    assert json.loads(run("stream", "ls", "-j").out) == ["B"]
    assert json.loads(run("stream", "ls", "-j", "-a").out) == ["B", "KV_A"]
    assert json.loads(run("stream", "-a", "ls", "-j").out) == ["B", "KV_A"]
    shown = run("stream", "ls").out.splitlines()
    assert shown[1].strip("│ ") == "Streams"
    assert shown[3].split("│")[1:3] == [" Name ", " Description "]
    assert shown[-2:] == ["", ""]
    assert "Streams matching b.x" in run("stream", "ls", "--subject", "b.x").out
    assert run("stream", "ls", "--output", "names").out == "B\n"


def test_report_and_its_machine_forms(run: Run) -> None:
    assert run("stream", "report").out == "Obtaining Stream stats\n\nNo Streams defined\n"
    add(run, "R3", "--replicas", "3")
    run("stream", "add", "M", "--mirror", "R3", "--defaults")
    table = run("stream", "report", "-n", "-l").out
    assert table.startswith("Obtaining Stream stats\n\n╭")
    assert "Replication Report" in table
    assert "RAFT Leader Report" in table
    rows = json.loads(run("stream", "report", "-n", "-o", "json").out)
    assert [row["name"] for row in rows] == ["M", "R3"]
    assert rows[1]["replicas"].count("*") == 1
    csv = run("stream", "report", "-n", "--render", "csv").out.splitlines()
    assert csv[0].startswith("name,storage,placement,consumers,messages,bytes")
    assert run("stream", "report", "-o", "md").out.count("\n|") >= 3


def test_edit_shows_the_difference(run: Run) -> None:
    add(run, "E")
    dry = run("stream", "edit", "E", "--max-msgs", "5", "--dry-run")
    assert (dry.code, dry.out) == (1, "Differences (-old +new):\n- max_msgs: -1\n+ max_msgs: 5\n")
    assert run("stream", "edit", "E", "--dry-run").out == "No difference in configuration\n"
    done = run("stream", "edit", "E", "--max-msgs", "5", "--subjects", "e.>,f", "-f")
    assert "\nStream E was updated\n" in done.out
    config = info(run, "E")["config"]
    assert (config["max_msgs"], config["subjects"]) == (5, ["e.>", "f"])
    refused = run("stream", "edit", "E", "--max-msgs", "6")
    assert refused.code == 1
    assert "cannot ask for confirmation without a terminal" in refused.err


def test_messages_can_be_read_removed_and_purged(run: Run, publish: Callable[..., None]) -> None:
    add(run, "P")
    for number in range(5):
        publish(f"p.{number % 2}", f"m{number}".encode())
    shown = run("stream", "get", "P", "2")
    assert shown.out.startswith("Item: P#2 received "), shown.err
    assert shown.out.endswith(" on Subject p.1\n\nm1\n\n\n")
    document = json.loads(run("stream", "get", "P", "-S", "p.0", "-j").out)
    assert (document["seq"], document["data"]) == (5, "bTQ=")
    assert json.loads(run("stream", "subjects", "P", "-j").out) == {"p.1": 2, "p.0": 3}
    assert "2 Subjects in stream P" in run("stream", "subjects", "P").out
    assert run("stream", "rmm", "P", "1", "-f").code == 0
    assert run("stream", "get", "P", "1").err == (
        "jsctl: error: could not retrieve P#1: no message found (10037)\n"
    )
    purged = run("stream", "purge", "P", "--keep", "1", "-f")
    assert purged.out.startswith("Purged 3 messages from P\n\nState for Stream P created ")
    purged = run("stream", "purge", "P", "-f", "-j")
    assert json.loads(purged.out)["state"]["messages"] == 0
    assert purged.err == "Purged 1 message from P\n"
    assert run("stream", "purge", "P", "--keep", "1", "--seq", "2", "-f").code == 1


def test_copy_and_seal(run: Run) -> None:
    add(run, "SRC", "--max-msgs", "9")
    assert run("stream", "copy", "SRC", "DST", "--subjects", "dst").code == 0
    assert info(run, "DST")["config"]["max_msgs"] == 9
    assert run("stream", "seal", "DST", "-f").code == 0
    assert info(run, "DST")["config"]["sealed"] is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("stream", "info", "NOPE"), 'stream "NOPE": stream not found (10059)\n'),
        (("stream", "get", "NOPE", "1"), 'stream "NOPE": stream not found (10059)\n'),
        (("stream", "info", "a.b"), '"a.b" is not a valid stream name'),
        (
            ("stream", "info"),
            "could not pick a Stream to operate on: "
            "cannot pick a Stream without a terminal and no Stream name supplied",
        ),
        (("stream", "rm", "-f"), "--force requires a stream name"),
        (("stream", "rm", "NOPE", "-f"), 'stream "NOPE": stream not found (10059)\n'),
        (("stream", "add"), "invalid input: cannot prompt for user input without a terminal"),
        (
            ("stream", "add", "X", "--subjects", "x", "--storage", "tape"),
            "enum value must be one of file,f,memory,m, got 'tape'",
        ),
        (
            ("stream", "add", "X", "--subjects", "$JS.API.>", "--defaults"),
            "could not create Stream: ",
        ),
        (
            ("stream", "add", "X", "--subjects", "x", "--mirror", "Y", "--defaults"),
            "mirrors cannot listen for messages on subjects",
        ),
        (("stream", "add", "--config", "/nope"), "path '/nope' does not exist"),
    ],
)
def test_errors_name_the_reason(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run(*words)
    assert result.code == 1
    assert result.err.startswith(f"jsctl: error: {message}")
    assert result.out == ""


def test_a_stream_needs_a_yes_to_be_removed(run: Run) -> None:
    add(run, "KEEP")
    result = run("stream", "rm", "KEEP")
    assert result.err == (
        "jsctl: error: could not obtain confirmation: "
        "cannot ask for confirmation without a terminal\n  --force skips the question\n"
    )
    assert run("stream", "rm", "KEEP", "-f").out == ""
    assert run("stream", "ls", "-n").out == ""


def test_a_graph_is_written_whatever_the_format(run: Run, tmp_path: Path) -> None:
    run("stream", "add", "O", "--subjects", "o", "--defaults")
    run("stream", "add", "M", "--mirror", "O", "--defaults")
    path = tmp_path / "graph.dot"
    assert run("stream", "report", "--dot", str(path), "-o", "json").code == 0
    assert path.read_text().startswith("digraph")


@pytest.mark.processes
def test_an_editor_changes_no_other_stream(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A1", "A2"):
        run("stream", "add", name, "--subjects", name, "--defaults")
        run("consumer", "add", name, "A1", "--pull", "--defaults")
        run("consumer", "add", name, "A2", "--pull", "--defaults")
    monkeypatch.setenv("EDITOR", "sed -i s/A1/A2/")
    for words in (("stream", "edit", "A1"), ("consumer", "edit", "A2", "A1")):
        found = run(*words, "-i", "-f")
        assert (found.code, "keeps its name" in found.err) == (1, True), found
