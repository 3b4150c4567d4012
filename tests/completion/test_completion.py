"""Completion: what may come next, in the real shells, soon enough."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which

import pytest
import tree_sitter_powershell
from tree_sitter import Language, Parser

from jsctl.cli import main as run_cli
from jsctl.commands.completion.scripts import SCRIPTS
from jsctl.completion import joined, main
from jsctl.completion.words import complete, named_values
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, Cluster, RealServer
from tests.commands.conftest import HEAVY
from tests.support.forked import jsctl

ROOT = Path(__file__).parents[2]
FILES = {"bash": "jsctl.bash", "zsh": "_jsctl", "fish": "jsctl.fish", "powershell": "jsctl.ps1"}
Names = Callable[..., list[str]]


@pytest.fixture(scope="module")
def cluster() -> "object":
    """Streams, a consumer and buckets."""
    with Cluster(3, server=RealServer) as found:
        found.wait_meta_leader()
        for words in (
            ("stream", "add", "ORDERS", "--subjects", "orders.>", "--defaults"),
            ("stream", "add", "OTHER", "--subjects", "other", "--defaults"),
            ("consumer", "add", "ORDERS", "BILLING", "--pull", "--defaults"),
            ("stream", "add", "KV_CFG", "--subjects", "$KV.CFG.>", "--defaults"),
            ("stream", "add", "OBJ_FILES", "--subjects", "$O.FILES.>", "--defaults"),
            ("pub", "-J", "$KV.CFG.a.b", "1"),
        ):
            jsctl(["-s", found.urls[0], *words]).check_returncode()
        yield found


@pytest.fixture
def environ(tmp_path: Path, cluster: Cluster) -> dict[str, str]:
    """A home of its own, and the cluster."""
    contexts = tmp_path / "nats" / "context"
    contexts.mkdir(parents=True)
    for name in ("prod", "test"):
        (contexts / f"{name}.json").write_text("{}")
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "NATS_URL": cluster.urls[0],
        "TERM": "dumb",
    }


@pytest.fixture
def names(environ: dict[str, str]) -> Names:
    return lambda *words: [value for value, _ in complete(words, environ).candidates]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["strea"], ["stream"]),
        (["stream", "inf"], ["info"]),
        (["str", "cluster", "step"], ["step-down"]),
        (["stream", "info", "--sta"], ["--state"]),
        (["stream", "subjects", "--no-na"], ["--no-names"]),
        (["stream", "subjects", "--sort", "n"], ["name"]),
        (["stream", "subjects", "--sort=n"], ["--sort=name"]),
        (["stream", "ls", "-o", "js"], ["json", "jsonl"]),
        (["stream", "ls", "--render", "y"], ["yaml"]),
        (["--colors", "gr"], ["green"]),
        (["server", "request", "profile", "he"], ["heap"]),
        (["nonsense", "stre"], ["stream"]),
        (["stream", "--nonsense", "inf"], ["info"]),
        (["broker", "x"], []),
        ([""], None),
    ],
)
def test_commands_and_flags(words: Sequence[str], found: list[str] | None) -> None:
    values = [value for value, _ in complete(words, {}).candidates]
    assert values == found if found is not None else "stream" in values


def test_paths_are_left_to_the_shell() -> None:
    assert complete(["stream", "add", "--config", "x"], {}).paths == "file"
    assert complete(["--creds", ""], {}).paths == "file"
    assert complete(["server", "request", "profile", "heap", ""], {}).paths == "dir"


def test_what_servers_know(names: Names) -> None:
    assert names("stream", "info", "O") == ["OBJ_FILES", "ORDERS", "OTHER"]
    assert names("s", "info", "--no-select", "OR") == ["ORDERS"]
    assert names("stream", "add", "O") == []
    assert names("consumer", "info", "ORDERS", "") == ["BILLING"]
    assert names("consumer", "info", "NOPE", "") == []
    assert names("server", "check", "consumer", "--stream", "ORDERS", "--consumer", "") == [
        "BILLING"
    ]
    assert names("kv", "get", "") == ["CFG"]
    assert names("kv", "get", "CFG", "a") == ["a.b"]
    assert names("object", "ls", "") == ["FILES"]
    assert names("pub", "o") == ["orders.>", "other"]
    assert names("--context", "p") == ["prod"]
    assert names("--context=p") == ["--context=prod"]
    assert names("context", "rm", "t") == ["test"]
    assert names("context", "add", "t") == []


def test_a_server_in_one_word_with_its_letter_is_asked(environ: dict[str, str]) -> None:
    elsewhere = {**environ, "NATS_URL": "nats://127.0.0.1:1"}
    words = [f"-s{environ['NATS_URL']}", "stream", "info", "OR"]
    assert [value for value, _ in complete(words, elsewhere).candidates] == ["ORDERS"]


def test_what_the_system_account_knows(names: Names) -> None:
    flags = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    assert names(*flags, "server", "info", "") == ["n1", "n2", "n3"]
    assert "$G" in names(*flags, "server", "account", "info", "")


def test_names_are_kept_and_offered_when_nobody_answers(
    names: Names, environ: dict[str, str]
) -> None:
    assert names("stream", "info", "OR") == ["ORDERS"]
    (kept,) = (Path(environ["XDG_CACHE_HOME"]) / "jsctl").iterdir()
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    lists = {key: (0.0, [["KEPT", ""]]) for key in json.loads(kept.read_text())}
    kept.write_text(json.dumps(lists))
    assert names("stream", "info", "K") == ["KV_CFG"], "too old"
    kept.write_text(json.dumps(lists))
    kept.rename(kept)
    environ["NATS_TIMEOUT"] = "1s"
    away = dict(environ, NATS_URL="127.0.0.1:1")
    assert complete(["stream", "info", ""], away).candidates == ()
    kept.write_text("{broken")
    assert names("stream", "info", "OR") == ["ORDERS"]


def test_a_context_in_a_file_hides_no_other_name() -> None:
    """It has no name among those that are stored."""
    found = named_values(["kv", "get", "CFGG", "k", "--context", "./prod.json"])
    assert [(kind, value) for kind, value, _ in found] == [("bucket", "CFGG"), ("key", "k")]


def test_nothing_is_said_whatever_is_typed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--", "stream", "info", "--timeout", "x", ""]) == 0
    assert main(["--shell", "bash", "--"]) == 0
    assert capfd.readouterr().err == ""


def test_words_that_bash_broke() -> None:
    assert joined(["--context", "=", "pr"]) == ["--context=pr"]
    assert joined(["-s", "nats", ":", "//h", ":", "42", "x"]) == ["-s", "nats://h:42", "x"]
    assert joined(["a", ""]) == ["a", ""]


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_scripts_are_as_they_are_printed(shell: str) -> None:
    """With REWRITE=1 in the environment they are written anew."""
    path = ROOT / "completions" / FILES[shell]
    if os.environ.get("REWRITE"):
        path.write_text(SCRIPTS[shell])
    assert path.read_text() == SCRIPTS[shell]


def test_scripts_have_the_name_that_nats_gives_them(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["--completion-script-zsh"]) == 0
    assert capfd.readouterr().out == SCRIPTS["zsh"]
    assert run_cli(["--completion-script-csh"]) == 1


def shell_says(shell: str, script: str, environ: dict[str, str], *flags: str) -> list[str]:
    if which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, *flags, "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


LINES = (
    ("jsctl stream info O", ["OBJ_FILES", "ORDERS", "OTHER"]),
    ("jsctl consumer info ORDERS ", ["BILLING"]),
    ("jsctl strea", ["stream"]),
    ("jsctl --context p", ["prod"]),
)


@pytest.mark.processes
@pytest.mark.parametrize(("line", "found"), LINES)
def test_bash(line: str, found: list[str], environ: dict[str, str]) -> None:
    words = line.split(" ")
    array = " ".join(f"'{word}'" for word in words)
    script = (
        f"source {ROOT}/completions/jsctl.bash; COMP_WORDS=({array}); "
        f'COMP_CWORD={len(words) - 1}; _jsctl; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    assert shell_says("bash", script, environ, "--norc") == found


@pytest.mark.processes
def test_bash_quotes_what_it_would_expand(environ: dict[str, str]) -> None:
    script = (
        f"source {ROOT}/completions/jsctl.bash; COMP_WORDS=(jsctl pub o); COMP_CWORD=2; _jsctl; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert shell_says("bash", script, environ, "--norc") == [r"orders.\>", "other"]
    broken = script.replace("(jsctl pub o); COMP_CWORD=2", "(jsctl --context = p); COMP_CWORD=3")
    assert shell_says("bash", broken, environ, "--norc") == ["prod"]


@pytest.mark.processes
@pytest.mark.parametrize(("line", "found"), LINES)
def test_zsh(line: str, found: list[str], environ: dict[str, str]) -> None:
    """The function runs with what it calls replaced by a word that tells."""
    words = line.split(" ")
    array = " ".join(f"'{word}'" for word in words)
    script = (
        "compdef() { :; }; _describe() { print -l -- ${(P)4}; }; "
        f"source {ROOT}/completions/_jsctl; words=({array}); CURRENT={len(words)}; _jsctl"
    )
    assert shell_says("zsh", script, environ, "-f") == found


@pytest.mark.processes
@pytest.mark.parametrize(("line", "found"), LINES)
def test_fish(line: str, found: list[str], environ: dict[str, str]) -> None:
    script = f"source {ROOT}/completions/jsctl.fish; complete -C '{line}'"
    lines = shell_says("fish", script, environ, "--no-config")
    assert [one.split("\t")[0] for one in lines] == found


def test_powershell_can_read_its_script() -> None:
    """As its grammar has it: the shell itself is on few machines."""
    parser = Parser(Language(tree_sitter_powershell.language()))
    script = (ROOT / "completions/jsctl.ps1").read_bytes()
    assert not parser.parse(script).root_node.has_error
    for mark in (b"}", b")", b"|"):
        assert parser.parse(script.replace(mark, b"", 1)).root_node.has_error, mark


def test_the_last_word_may_be_given_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """PowerShell before 7.3 leaves empty words out."""
    assert main(["--shell", "powershell", "--last=", "--", "stream"]) == 0
    below = capsys.readouterr().out
    assert "info\t" in below and "report\t" in below
    assert main(["--shell", "powershell", "--last=rep", "--", "stream"]) == 0
    assert capsys.readouterr().out == "".join(
        f"{line}\n" for line in below.splitlines() if line.startswith("rep")
    )


@pytest.mark.processes
def test_powershell(environ: dict[str, str]) -> None:
    script = (
        f". {ROOT}/completions/jsctl.ps1; $line = 'jsctl stream info O'; "
        "(TabExpansion2 $line $line.Length).CompletionMatches.CompletionText"
    )
    assert shell_says("pwsh", script, environ, "-NoProfile") == LINES[0][1]


@pytest.mark.processes
def test_a_key_loads_little(environ: dict[str, str]) -> None:
    """Not even names from a server need the loop or the client library."""
    script = (
        "import sys; from jsctl.completion import main; "
        "main(['--', 'stream', 'info', 'OR']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "ORDERS\n"
    assert not set(HEAVY) & set(done.stderr.split())
