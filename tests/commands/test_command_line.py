"""Words to commands: global flags, the tree, help, usage errors, exit codes, start-up."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from jsctl import __version__
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig
from jsctl.api.words import AckPolicy, DeliverPolicy, PriorityPolicy
from jsctl.cli import hoist, walk
from jsctl.commands import REGISTRY
from jsctl.commands.consumer import config as consumer_config
from jsctl.commands.consumer.change import parse_until
from jsctl.commands.stream import config as stream_config
from jsctl.commands.toolkit.grammar.spec import (
    Command,
    Group,
    Kind,
    Option,
    check_value,
    function_of,
    options_of,
    parse_size,
)
from jsctl.commands.toolkit.invocation.call import Call, Value
from jsctl.commands.toolkit.invocation.output import Output, make_output
from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.errors import UsageError
from jsctl.render.column import Column
from jsctl.settings import GLOBAL_FLAGS, Settings
from tests.commands.conftest import Result

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
    shorts = [one.short for one in options_of(command) if one.short]
    assert len(shorts) == len(set(shorts))
    everywhere = {flag.name for flag in GLOBAL_FLAGS} | {"help", "version"}
    assert not everywhere & set(names), "global flags are not repeated"
    assert not {one.name for one in command.arguments} & set(names)


@pytest.mark.parametrize(("path", "command"), all_leaves(), ids=lambda value: str(value)[:40])
def test_every_command_has_help(path: tuple[str, ...], command: Command, cli: Run) -> None:
    result = cli(*path, "--help")
    assert result.code == 0
    assert result.out.startswith(f"usage: jsctl {' '.join(path)} [<flags>]")
    assert "Global Flags:" in result.out
    assert all(len(line) <= 100 for line in result.out.splitlines())


def test_help_of_groups_and_the_root(cli: Run) -> None:
    root = cli().out
    assert root == cli("--help").out == cli("help").out
    assert all(f"  {row.name}" in root for row in REGISTRY)
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
        (("stream",), "a subcommand from the list below is required, use --help"),
        (("stream", "ls", "--bogus"), "unknown long flag '--bogus'"),
        (("stream", "ls", "-x"), "unknown short flag '-x'"),
        (("stream", "ls", "a", "b"), "unexpected argument a"),
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


def test_nobody_there(cli: Run) -> None:
    result = cli("stream", "ls", "--server", "127.0.0.1:1", "--timeout", "5s")
    assert result.code == 1
    assert result.err == "jsctl: error: setup failed: nats: no servers available for connection\n"


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


def test_values_are_checked_by_kind() -> None:
    assert parse_size("1K") == 1024
    assert parse_size("1.5MiB") == 3 * 512 * 1024
    assert parse_size("2GB") == 2 * 1024**3
    assert parse_size("") == parse_size("-5") == -1
    for kind, wrong in (
        (Kind.INTEGER, "x"),
        (Kind.DURATION, "5 minutes"),
        (Kind.SIZE, "1X"),
        (Kind.MAP, "novalue"),
    ):
        with pytest.raises(UsageError):
            check_value(Option("o", "", kind), wrong)


def test_a_call_converts_its_values() -> None:
    values: dict[str, Value] = {
        "n": "5",
        "d": "2s",
        "size": "1K",
        "list": ("a,b c", "d"),
        "map": ("k=v:w", "x:y=z"),
        "on": True,
        "off": False,
        "none": None,
    }
    output = make_output("", "", {})
    call = Call(values, {"none": "true", "text": "def"}, Settings(), output, Prompts())
    assert (call.integer("n"), call.duration("d"), call.size("size")) == (5, 2 * 10**9, 1024)
    assert call.words("list") == ("a", "b", "c", "d")
    assert call.mapping("map") == {"k": "v:w", "x": "y=z"}
    assert (call.switch("on"), call.switch("off"), call.switch("none")) == (True, False, None)
    assert (call.flag("none"), call.flag("off"), call.text("text")) == (True, False, "def")
    assert (call.given("off"), call.given("none"), call.given("text")) == (True, False, False)


@pytest.mark.parametrize(
    ("environ", "form", "corner"),
    [
        ({}, "table", "╭"),
        ({"NATS_TABLE_FORMAT": "markdown"}, "md", "╭"),
        ({"NATS_TABLE_FORMAT": "csv"}, "csv", "╭"),
        ({"LLMFORMAT": "1"}, "md", "╭"),
        ({"JSCTL_ASCII": "1"}, "table", "+"),
        ({"TERM": "dumb"}, "table", "+"),
    ],
)
def test_the_environment_chooses_the_looks(environ: dict[str, str], form: str, corner: str) -> None:
    output = make_output("", "", environ)
    assert (output.form, output.theme.box.top[0]) == (form, corner)
    assert make_output("yaml", "", environ).form == "yaml"


def test_columns_of_low_priority_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: tuple[Column[str], ...] = (
        Column("a", "A" * 30, lambda row: row),
        Column("b", "B" * 30, lambda row: row, priority=2),
        Column("c", "C" * 30, lambda row: row, priority=1),
    )
    monkeypatch.setattr(Output, "width", 80)
    output = make_output("", "", {})
    assert [column.key for column in output.fitting(["x"], columns)] == ["a", "c"]


def test_newer_features_name_the_level_they_need() -> None:
    assert stream_config.required_level(StreamConfig()) == 0
    assert stream_config.required_level(StreamConfig(allow_msg_ttl=True)) == 1
    assert stream_config.required_level(StreamConfig(allow_atomic=True)) == 2
    assert stream_config.required_level(StreamConfig(allow_batched=True)) == 4
    pinned = ConsumerConfig(priority_policy=PriorityPolicy.PINNED_CLIENT)
    assert consumer_config.required_level(pinned) == 2
    assert consumer_config.required_level(ConsumerConfig(pause_until="x")) == 1
    assert consumer_config.required_level(ConsumerConfig(ack_policy=AckPolicy.FLOW_CONTROL)) == 4


@pytest.mark.parametrize(
    ("text", "policy", "start"),
    [
        ("all", DeliverPolicy.ALL, 0),
        ("new", DeliverPolicy.NEW, 0),
        ("subject", DeliverPolicy.LAST_PER_SUBJECT, 0),
        ("100", DeliverPolicy.BY_START_SEQUENCE, 100),
        ("1h", DeliverPolicy.BY_START_TIME, 0),
    ],
)
def test_start_policies(text: str, policy: DeliverPolicy, start: int) -> None:
    config = consumer_config.starting(ConsumerConfig(), text)
    assert (config.deliver_policy, config.opt_start_seq) == (policy, start)
    assert bool(config.opt_start_time) is (policy is DeliverPolicy.BY_START_TIME)


def test_backoffs_and_times() -> None:
    assert consumer_config.linear_backoff(3, 10, 30) == (10, 20, 30)
    assert consumer_config.linear_backoff(1, 10, 30) == (10,)
    assert parse_until("2030-01-02T03:04:05Z") == "2030-01-02T03:04:05Z"
    assert parse_until("2030-01-02 03:04:05") == "2030-01-02T03:04:05Z"
    for wrong in (lambda: consumer_config.linear_backoff(0, 1, 2), lambda: parse_until("soon")):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError):
        consumer_config.starting(ConsumerConfig(), "soon")


HEAVY = ("asyncio", "ssl", "rich", "pydantic", "nats", "textual", "typer", "httpx", "yaml")


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
    assert "jsctl.commands.stream" not in modules
    assert not set(HEAVY) & imported(["stream", "add", "--help"])


@pytest.mark.processes
def test_an_ordinary_command_needs_no_schema_library() -> None:
    modules = imported(["stream", "ls", "--server", "127.0.0.1:1", "--timeout", "100ms"])
    assert not modules & {"pydantic", "rich", "textual", "httpx", "yaml", "jsctl.broker"}
