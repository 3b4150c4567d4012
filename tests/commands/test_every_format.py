"""Every command that prints data prints it as JSON, YAML, CSV and Markdown, too.

The lines are in `every_format.txt`; a command that is in none of them says here why.
"""

import csv
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from jsctl.cli import main, root, walk
from jsctl.commands.toolkit.grammar.spec import Group, options_of
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, Cluster
from tests.support.waiting import wait_for

TABLE = Path(__file__).with_name("every_format.txt")
FORMS = ("json", "yaml", "csv", "md")
OTHERS = {"broker", "completion", "dashboard", "jsm", "pipeline"}
"""Not operators' commands, other words for them, or with tests of their own."""
SILENT = {
    "account backup": "as `backup account`",
    "account restore": "takes what `account backup` made, as `backup restore account`",
    "account tls": "needs a server with TLS",
    "auth account exports": "changes, and shows it with `info`",
    "auth account imports": "as exports",
    "auth account keys rm": "changes",
    "auth account mappings rm": "changes",
    "auth account push": "needs a resolver",
    "auth account query": "as above",
    "auth nkey seal": "writes bytes",
    "auth nkey unseal": "as above",
    "auth operator backup": "writes a file",
    "auth operator import": "reads one",
    "auth operator keys rm": "changes",
    "auth operator restore": "reads a file",
    "auth user credential": "writes a file",
    "auth user rm": "changes",
    "audit gather": "writes an archive",
    "backup lookup": "needs a file of keys",
    "backup restore": "shows what it made with `stream info`",
    "bench": "all end as `bench pub` does",
    "cheat": "pages to read",
    "consumer cluster evacuate": "needs a fourth server",
    "consumer graph": "a picture",
    "consumer resume": "ends what `consumer pause` has begun, which is in the table",
    "consumer rm": "changes",
    "consumer sub": "has no end",
    "consumer unpin": "needs a client that is pinned",
    "context edit": "opens an editor",
    "context previous": "as `context select`",
    "context rm": "changes",
    "context select": "would change who the other lines are",
    "context unselect": "changes",
    "dlq": "has tests of its own, with letters",
    "errors edit": "opens an editor",
    "errors validate": "judges a file",
    "events": "has no end",
    "kv compact": "changes",
    "kv del": "changes",
    "kv purge": "changes",
    "kv update": "as `kv put`",
    "kv watch": "has no end",
    "object del": "changes",
    "object seal": "changes",
    "object watch": "has no end",
    "plugins register": "writes a file",
    "reply": "has no end",
    "server account purge": "changes",
    "server check exporter": "has no end",
    "server cluster evacuate": "needs a fourth server",
    "server cluster peer-remove": "as above",
    "server cluster rescue": "needs a cluster that is broken",
    "server generate": "writes files",
    "server graph": "a picture",
    "server report gateways": "needs a second cluster",
    "server report leafnodes": "needs a leaf node",
    "server request kick": "changes",
    "server request profile": "writes a file",
    "server run": "has no end",
    "server watch": "has no end",
    "service serve": "has no end",
    "stream backup": "the old words for `backup stream`",
    "stream cluster cancel-move": "needs a move",
    "stream cluster evacuate": "needs a fourth server",
    "stream cluster peer-remove": "as above",
    "stream cluster rescue": "needs a stream that is broken",
    "stream graph": "a picture",
    "stream restore": "as `backup restore`",
    "stream rm": "changes",
    "stream rmm": "changes",
    "stream seal": "changes",
    "top": "has no end",
    "traffic": "has no end",
}
"""What is not in the table, and why; a name stands for all below it."""

Run = Callable[[str], tuple[int, str, str]]


def lines(mark: str = "") -> list[str]:
    """Those that prepare, with the mark, or those that are tried."""
    every = [one for one in TABLE.read_text().splitlines() if one and not one.startswith("#")]
    if mark:
        return [one.removeprefix(mark) for one in every if one.startswith(mark)]
    return [one for one in every if not one.startswith("= ")]


def leaves(words: tuple[str, ...]) -> Iterator[str]:
    node = walk(words).node
    if isinstance(node, Group):
        for command in node.commands:
            yield from leaves((*words, command.name))
    else:
        yield " ".join(words)


def name_of(line: str) -> str:
    """Of the command in it."""
    words = shlex.split(line.removeprefix("sys "))
    return " ".join(walk(words).path[1:])


def test_each_command_is_in_the_table_or_says_why_not() -> None:
    groups = [one.name for one in root().commands if one.name not in OTHERS]
    every = {leaf for name in groups for leaf in leaves((name,))}
    shown = {name_of(line) for line in lines()}
    assert shown <= every
    left = {leaf for leaf in every - shown if not any(covers(one, leaf) for one in SILENT)}
    assert not left
    needless = {one for one in SILENT if not any(covers(one, leaf) for leaf in every - shown)}
    assert not needless


def covers(name: str, leaf: str) -> bool:
    return leaf == name or leaf.startswith(f"{name} ")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("work")
    (made / "text").write_text("some words")
    (made / "some.json").write_text("{}")
    return made


@pytest.fixture
def run(
    cluster: Cluster,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    monkeypatch.chdir(folder)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(folder / "home"))
    monkeypatch.setenv("NATS_URL", ",".join(cluster.urls))
    monkeypatch.setenv("JSCTL_NO_PROMPT", "1")

    def on_cluster(line: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            if line.startswith("sys "):
                patch.setenv("NATS_USER", SYSTEM_USER)
                patch.setenv("NATS_PASSWORD", SYSTEM_PASSWORD)
            capfd.readouterr()
            code = main(shlex.split(line.removeprefix("sys ")))
            said = capfd.readouterr()
        return code, said.out, said.err

    return on_cluster


@pytest.fixture
def prepared(run: Run, cluster: Cluster, folder: Path) -> Iterator[dict[str, str]]:
    """A cluster with something of each kind, and what lines say between braces."""
    (folder / "seed").write_text(run("auth nkey gen user")[1])
    (folder / "sig").write_text(run("auth nkey sign text seed")[1])
    for line in lines("= "):
        code, out, err = run(line)
        assert code == 0, (line, out, err)
    words = [sys.executable, "-m", "jsctl", "service", "serve", "SVC"]
    served = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: "SVC" in run("service list -o names")[1], "the service is there")
        server = json.loads(run("sys server info n1 -j")[1])["server_id"]
        yield {"{url}": cluster.urls[0], "{server}": server}
    finally:
        served.kill()
        served.wait()


@pytest.mark.slow
def test_every_format_of_every_command(
    run: Run, prepared: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: list[str] = []
    for line in lines():
        for form in FORMS:
            words = line.replace("%", form) + f" --render {form}"
            for mark, value in prepared.items():
                words = words.replace(mark, value)
            for wait in ("1s", os.environ.get("JSCTL_TEST_PATIENCE", "20s")):
                monkeypatch.setenv("NATS_TIMEOUT", wait)  # what gathers answers waits all of it
                code, out, err = run(words)
                if code == 0 and out:
                    break
            problem = problem_of(form, out) or ("" if code == 0 else f"exit status {code}")
            if problem:
                wrong.append(f"{words}: {problem}\n{out[:200]}\n{err[:200]}")
    assert not wrong, "\n".join(wrong)


def problem_of(form: str, out: str) -> str:
    """Why that is not data in that format; empty if it is."""
    if not out.strip():
        return "nothing"
    return PROBLEMS[form](out)


def _json(out: str) -> str:
    """A document, or one a line of what comes one by one."""
    try:
        json.loads(out)
    except ValueError:
        try:
            [json.loads(line) for line in out.splitlines()]
        except ValueError as error:
            return str(error)
    return ""


def _yaml(out: str) -> str:
    try:
        found = list(yaml.safe_load_all(out))
    except yaml.YAMLError as error:
        return str(error)
    return "a sentence" if any(isinstance(one, str) for one in found) else ""


def _csv(out: str) -> str:
    head, *rows = csv.reader(io.StringIO(out))
    if not rows:
        return "no rows"
    if any(len(row) != len(head) for row in rows):
        return "rows of different lengths"
    return "" if all(head) and len(set(head)) == len(head) else "the head is none"


def _markdown(out: str) -> str:
    if set("╭│─") & set(out):
        return "a table of the terminal"
    marked = [one for one in out.splitlines() if one.startswith(("|", "#", "- "))]
    return "" if marked else "neither a table nor a heading"


PROBLEMS = {"json": _json, "yaml": _yaml, "csv": _csv, "md": _markdown}


def test_every_report_can_be_watched() -> None:
    groups = [one.name for one in root().commands if one.name not in OTHERS]
    every = {leaf for name in groups for leaf in leaves((name,))}
    reports = [leaf for leaf in every if "report" in leaf.split()]
    assert len(reports) > 10
    for leaf in reports:
        found = walk(leaf.split())
        assert not isinstance(found.node, Group)
        options = (*options_of(found.node), *found.inherited)
        assert any(one.name == "watch" for one in options), leaf
