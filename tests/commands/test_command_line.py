"""Words to commands: global flags, the tree, help, usage errors, exit codes, start-up."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl import __version__
from jsctl.cli import hoist, walk
from jsctl.commands import REGISTRY
from jsctl.commands.toolkit.grammar.spec import Command, Group, options_of
from jsctl.commands.toolkit.invocation.call import function_of
from jsctl.errors import UsageError
from jsctl.settings import GLOBAL_FLAGS
from tests.commands.conftest import HEAVY, Result

Run = Callable[..., Result]
MODULES = [row.name for row in REGISTRY if row.name in ("stream", "consumer", "jsm")]


def leaves(
    node: Command | Group, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Command]]:
    if isinstance(node, Command):
        yield path, node
        return
    for child in node.commands:
        yield from leaves(child, (*path, child.name))


def all_leaves() -> list[tuple[tuple[str, ...], Command]]:
    return [leaf for name in MODULES for leaf in leaves(walk([name]).node, (name,))]


def test_global_flags_may_stand_anywhere() -> None:
    flags, rest = hoist(["-s", "a", "stream", "ls", "--timeout=1s", "-j", "--no-tlsfirst"])
    assert flags == {"url": "a", "timeout": "1s", "tls_first": "false"}
    assert rest == ["stream", "ls", "-j"]
    assert hoist(["pub", "--", "--server", "x"]) == ({}, ["pub", "--", "--server", "x"])
    assert hoist(["--monitor", "a", "--monitor=b"])[0] == {"monitor": "a,b"}
    assert hoist(["-sX", "--domain", "d"])[0] == {"url": "X", "jetstream_domain": "d"}
    assert hoist(["-s=X"])[0] == {"url": "=X"}, "as it stands, as nats takes it"


@pytest.mark.parametrize(
    "word", ["--no-context=false", "--trace=1", "--tlsfirst=", "--no-tlsfirst=x"]
)
def test_a_global_flag_takes_no_value_that_it_has_no_use_for(word: str) -> None:
    """`--no-context=false` left the context out, and `--trace=false` traced."""
    value = word.partition("=")[2]
    with pytest.raises(UsageError, match=f"unexpected argument {value}"):
        hoist(["stream", "ls", word])


@pytest.mark.parametrize("word", ["-ah", "-ha", "--help=1"])
def test_help_may_stand_among_other_flags(word: str, cli: Run) -> None:
    found = cli("stream", "ls", word)
    assert (found.code, found.out) == (0, cli("stream", "ls", "--help").out)
    assert cli("stream", "ls", word.replace("h", "Z", 1)).code == 1


def test_output_is_global_only_with_the_name_of_a_format() -> None:
    assert hoist(["stream", "report", "-o", "json"]) == ({"render": "json"}, ["stream", "report"])
    assert hoist(["stream", "report", "-o"])[1] == ["stream", "report", "-o"]
    assert hoist(["stream", "add", "--output", "f.json"])[1][-2:] == ["--output", "f.json"]
    assert hoist(["--output=yaml"])[0] == {"render": "yaml"}
    with pytest.raises(UsageError, match="enum value must be one of"):
        hoist(["--render", "pdf"])
    with pytest.raises(UsageError, match="expected argument for flag '--server'"):
        hoist(["--server"])


@pytest.mark.parametrize(("path", "command"), all_leaves(), ids=lambda value: str(value)[:40])
def test_every_command_is_whole(path: tuple[str, ...], command: Command) -> None:
    assert callable(function_of(command))
    assert command.help
    names = [name for one in options_of(command) for name in (one.name, *one.aliases)]
    assert len(names) == len(set(names)), "no option twice"
    keys = {one.key or one.name for one in options_of(command)}
    shorts = [one.short for one in options_of(command) if one.short]
    assert len(shorts) == len(set(shorts))
    everywhere = {flag.name for flag in GLOBAL_FLAGS} | {"help", "version"}
    assert not everywhere & set(names), "global flags are not repeated"
    assert not {one.name for one in command.arguments} & keys


@pytest.mark.parametrize(("path", "command"), all_leaves(), ids=lambda value: str(value)[:40])
def test_every_command_has_help(path: tuple[str, ...], command: Command, cli: Run) -> None:
    result = cli(*path, "--help")
    assert result.code == 0
    words = [*path, *(["[<flags>]"] if options_of(command) else [])]
    assert result.out.startswith(f"usage: jsctl {' '.join(words)}")
    assert "Global Flags:" in result.out
    assert all(len(line) <= 100 for line in result.out.splitlines())


def test_help_of_groups_and_the_root(cli: Run) -> None:
    root = cli().out
    assert root == cli("--help").out == cli("help").out
    assert all(f"  {row.name}" in root for row in REGISTRY if not row.hidden)
    stream = cli("help", "stream").out
    assert stream == cli("str", "-h").out
    assert "  stream report    Reports on stream statistics\n" in stream
    assert "Command Aliases: str, st, ms, s\n" in stream
    assert cli("--version").out == f"{__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bogus",), 'expected command but got "bogus", use --help'),
        (("stream", "bogus"), 'expected command but got "bogus", use --help'),
        (("stream", "-", "ls"), 'expected command but got "", use --help'),
        (("stream",), "a subcommand from the list below is required, use --help"),
        (("stream", "ls", "--bogus"), "unknown long flag '--bogus'"),
        (("stream", "ls", "-x"), "unknown short flag '-x'"),
        (("stream", "ls", "a", "b"), "unexpected argument a"),
        (("stream", "ls", "a b", "c"), "unexpected argument a b"),
        (("stream", "ls", "--json=yes"), "unexpected argument yes"),
        (("stream", "ls", "-n", "-n"), "flag 'names' cannot be repeated"),
        (("stream", "ls", "--subject", "a", "--subject=b"), "flag 'subject' cannot be repeated"),
        (("stream", "subjects", "--names", "--no-names"), "flag 'names' cannot be repeated"),
        (("stream", "ls", "--user", "a", "--user=b"), "flag 'user' cannot be repeated"),
        (("stream", "ls", "--user"), "expected argument for flag '--user'"),
        (("-x",), "unknown short flag '-x'"),
        (("stream", "-an", "ls"), "unknown short flag '-n'"),
        (("stream", "add", "--subjects"), "expected argument for flag '--subjects'"),
        (("consumer", "next", "S"), "required argument 'consumer' not provided"),
    ],
)
def test_usage_errors_show_the_help(words: tuple[str, ...], message: str, cli: Run) -> None:
    result = cli(*words)
    assert result.code == 1
    assert result.err.startswith(f"error: {message}")
    assert result.err.endswith("\n\n")
    assert result.out.startswith("usage: jsctl ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("stream", "purge", "A", "--seq", "x"), "--seq: expected a whole number, got 'x'"),
        (("stream", "purge", "A", "--seq=-1"), "--seq: expected a number that is not negative"),
        (("stream", "get", "A", "1.5"), "id: expected a whole number, got '1.5'"),
        (("stream", "add", "--max-age", "1 day"), "--max-age: invalid duration '1 day'"),
        (("stream", "add", "--max-bytes", "1X"), "--max-bytes: invalid bytes specification '1X'"),
        (("stream", "add", "--config", "/nope"), "path '/nope' does not exist"),
        (("kv", "update", "B", "k", "v", "-1"), "unknown short flag '-1'"),
        (("stream", "add", "--storage", "tape"), "enum value must be one of file,f,memory,m, got"),
    ],
)
def test_values_that_do_not_fit_are_refused_before_anything_is_asked(
    words: tuple[str, ...], message: str, cli: Run
) -> None:
    result = cli(*words, "--server", "127.0.0.1:1")
    assert result.code == 1
    assert result.err.removeprefix("jsctl: ").startswith(f"error: {message}")


def test_words_may_stand_in_a_file(cli: Run, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.write_text("# the flags\n\n--help\n")
    outer.write_text(f"ls\n@{inner}\n")
    assert cli("stream", f"@{outer}").out == cli("stream", "ls", "--help").out
    outer.write_text(f"ls\n@{outer}\n")
    assert "more than 8 deep" in cli("stream", f"@{outer}").err
    missing = cli("pub", "a", f"@{tmp_path}/none")
    assert missing.err.startswith(f'jsctl: error: failed to open arguments file "{tmp_path}/none"')
    behind = cli("pub", "--server", "127.0.0.1:1", "--", "a", "@none")
    assert "no servers available" in behind.err
    assert cli("pub", "a", "@").err == "jsctl: error: expected @ file to expand arguments from\n"


def test_nobody_there(cli: Run) -> None:
    result = cli("stream", "ls", "--server", "127.0.0.1:1", "--timeout", "5s")
    assert result.code == 1
    line, hint = result.err.splitlines()
    assert line == "jsctl: error: setup failed: nats: no servers available for connection"
    assert hint.startswith("  127.0.0.1:1: ")


def test_detailed_exit_codes_and_json_errors(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSCTL_EXIT", "detailed")
    assert cli("bogus").code == 2
    result = cli("stream", "ls", "-s", "127.0.0.1:1", "--timeout", "5s", "-o", "json")
    assert (result.code, result.out) == (5, "")
    assert json.loads(result.err)["error"]["class"] == "unreachable"
    assert cli("stream", "ls", "--context", "nope").code == 3
    assert cli("stream", "ls", "--timeout", "x").code == 2


def test_flags_before_their_command_belong_to_a_group_above() -> None:
    assert walk(["stream", "-a", "ls"]).words == ("-a",)
    with pytest.raises(UsageError, match="unknown short flag '-n'"):
        walk(["stream", "-n", "ls"])


def imported(words: list[str]) -> set[str]:
    code = (
        "import sys\nfrom jsctl.cli import main\n"
        f"main({words!r})\nprint('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    return set(done.stderr.split())


@pytest.mark.processes
def test_help_imports_nothing_heavy_and_no_command() -> None:
    modules = imported(["--help"])
    assert not modules & set(HEAVY)
    assert not {"jsctl.commands.stream", "jsctl.api.jsontext", "base64"} & modules
    assert not set(HEAVY) & imported(["stream", "add", "--help"])


@pytest.mark.processes
def test_no_declaration_of_a_group_loads_what_takes_long() -> None:
    script = (
        "import sys; from jsctl.cli import help_of, walk; from jsctl.commands import REGISTRY\n"
        "for row in REGISTRY:\n"
        "    if row.attribute != 'main': help_of(walk([row.name]))\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not set(HEAVY) & set(done.stdout.split())


@pytest.mark.processes
def test_an_ordinary_command_loads_no_more_than_it_needs() -> None:
    away = ["--server", "127.0.0.1:1", "--timeout", "100ms"]
    for words in (["stream", "ls"], ["stream", "report"], ["pub", "a", "b"]):
        modules = imported([*words, *away])
        assert not modules & {"rich", "textual", "httpx", "yaml", "jsctl.broker"}
        assert not modules & {"aiohttp.client", "nats.js.client", "nats.js.api"}, words
        assert not modules & {"jsctl.api.responses", "jsctl.api.requests"}, words


@pytest.mark.processes
def test_the_client_library_is_whole_when_it_is_used() -> None:
    """Half of it is loaded late; its own names have to lead there."""
    script = (
        "import asyncio, sys\n"
        "from jsctl.client.connection import open_client\n"
        "from jsctl.errors import Unreachable\n"
        "from jsctl.settings import Context, Settings\n"
        "away = Settings(connection=Context(url='127.0.0.1:1'))\n"
        "try: asyncio.run(open_client(away))\n"
        "except Unreachable: pass\n"
        "assert 'nats.js.api' not in sys.modules\n"
        "import nats, nats.js.api\n"
        "from nats.js import JetStreamContext\n"
        "assert nats.js.api.Header.STATUS.value == 'Status'\n"
        "assert isinstance(nats.NATS().jetstream(), JetStreamContext)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.processes
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_leads_nowhere(closed: str) -> None:
    line = f'"{sys.executable}" -m jsctl errors lookup 10059 {closed}'
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == ("1" not in closed and not closed.startswith(">"))
