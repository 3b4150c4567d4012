"""Random words and values for every command, without a server: one clear answer, never a crash."""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.cli import main, root, walk
from jsctl.commands.toolkit.grammar.spec import Group, Kind, options_of

WORDS = (
    *("", "-1", "0", "99999999999999999999", "x", "1h", "-5s", "1e400", "NaN", "[", "a b", "*"),
    *(">", "\x00", "ä\udcff", "../..", "/nope", "{}", "1KiB", "null", "$JS.>", "-", "--"),
    *("@nope", "0x1f", "nats://:x"),
)
OTHERS = {"broker", "completion", "dashboard", "jsm", "pipeline"}
"""Not operators' commands, or with tests of this kind of their own."""
ENDLESS = {
    *(("events",), ("reply",), ("subscribe",), ("top",), ("traffic",)),
    *(("server", "run"), ("server", "check", "exporter"), ("service", "serve")),
    *(("bench", "service", "serve"), ("kv", "watch"), ("object", "watch")),
    *(("server", "watch", what) for what in ("accounts", "jetstream", "servers")),
    ("server", "watch", "api", "requests"),
}
"""What goes on until somebody stops it; of others with these names that is not so."""
LINES = 40
"""Of each seed: a few seconds."""


def leaves(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    node = walk(words).node
    if isinstance(node, Group):
        for command in node.commands:
            yield from leaves((*words, command.name))
    elif words not in ENDLESS:
        yield words


def line(words: tuple[str, ...], chance: random.Random) -> list[str]:
    """Of that command, with values that mostly cannot be."""
    found = walk(words)
    assert not isinstance(found.node, Group)
    count = len(found.node.arguments)
    given = [chance.choice(WORDS) for _ in range(chance.choice((0, count, count, count + 1)))]
    options = (*options_of(found.node), *found.inherited)
    for option in chance.sample(options, min(chance.randint(0, 3), len(options))):
        value = f"={chance.choice((*WORDS, *option.choices))}"
        given.append(f"--{option.name}{'' if option.kind in (Kind.FLAG, Kind.SWITCH) else value}")
    return [*words, *given]


def test_commands_that_never_end_are_commands() -> None:
    assert all(not isinstance(walk(words).node, Group) for words in ENDLESS)
    groups = [one.name for one in root().commands if one.name not in OTHERS]
    every = {leaf for name in groups for leaf in leaves((name,))}
    assert not every & ENDLESS
    assert {("plugins", "register"), ("bench", "sub"), ("stream", "graph")} <= every


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_any_words_are_answered(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    places = {"HOME": home, "XDG_CONFIG_HOME": home / "config", "XDG_DATA_HOME": home / "data"}
    server = {"NATS_URL": "nats://127.0.0.1:1", "NATS_TIMEOUT": "200ms"}
    for name, value in {**places, **server, "JSCTL_NO_PROMPT": "1", "EDITOR": "false"}.items():
        monkeypatch.setenv(name, str(value))
    chance = random.Random(seed)
    groups = [one.name for one in root().commands if one.name not in OTHERS]
    every = [leaf for name in groups for leaf in leaves((name,))]
    for _ in range(LINES):
        words = line(chance.choice(every), chance)
        before = set(work.rglob("*"))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
        code = main(words)
        said = capfd.readouterr()
        assert code in ((0, 1, 2, 3) if words[:2] == ["server", "check"] else (0, 1)), (words, said)
        assert "Traceback" not in said.err, (words, said)
        assert code == 0 or set(work.rglob("*")) == before, (words, said)
