"""Every command has a manual page that `man` can show, with all its flags and arguments."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from jsctl.cli import walk
from jsctl.commands import REGISTRY
from jsctl.commands.toolkit.grammar.manual import manual
from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, options_of
from jsctl.settings import GLOBAL_FLAGS

READ_S = 60
PAGE = re.compile(r'^\.TH "JSCTL', re.MULTILINE)
HEADING = re.compile(r"^\.SH (.+)$", re.MULTILINE)
MACROS = ("TH", "SH", "TP", "PP", "B", "I", "nf", "fi")
NAMES = [row.name for row in REGISTRY if row.attribute != "main"]


def leaves(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words of every command below some."""
    node = walk(words).node
    if isinstance(node, Group):
        for one in node.commands:
            yield from leaves((*words, one.name))
    else:
        yield words


def page_of(words: tuple[str, ...]) -> str:
    """As `--help-man` prints it."""
    found = walk(words)
    return manual(found.path, found.node, found.inherited)


def wanted(words: tuple[str, ...]) -> list[str]:
    """What has to stand in the page of a command: its flags as they are typed, its arguments."""
    found = walk(words)
    assert isinstance(found.node, Command)
    options = [one for one in (*options_of(found.node), *found.inherited) if not one.hidden]
    made = [f"-{one.short}, " * bool(one.short) + flag(one.name, one.kind) for one in options]
    made += [one.name for one in found.node.arguments]
    return [*made, *(f"--{one.name}" for one in GLOBAL_FLAGS if not one.negative)]


def flag(name: str, kind: Kind) -> str:
    """With what switches it off."""
    return f"--[no-]{name}" if kind is Kind.SWITCH else f"--{name}"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_each_command_is_whole(name: str) -> None:
    for words in leaves((name,)):
        page = page_of(words)
        headings = HEADING.findall(page)
        assert headings[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], words
        assert headings[-1] == "GLOBAL OPTIONS", words
        assert all(line.split(" ")[0][1:] in MACROS for line in page.splitlines() if line[0] == ".")


@pytest.mark.processes
@pytest.mark.parametrize("name", NAMES)
def test_man_shows_every_flag_of_every_command(name: str, tmp_path: Path) -> None:
    """All pages of a group are one text for the reader, and are told apart by their titles."""
    reader = reader_of(tmp_path / "page.1")
    if reader is None:
        pytest.skip("there is neither man nor groff nor mandoc")
    commands = list(leaves((name,)))
    (tmp_path / "page.1").write_text("".join(page_of(words) for words in commands))
    done = subprocess.run(
        reader,
        capture_output=True,
        text=True,
        env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""},
        check=False,
        timeout=READ_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = re.split(r"^NAME$", plain(done.stdout), flags=re.MULTILINE)[1:]
    assert len(shown) == len(commands)
    for words, text in zip(commands, shown, strict=True):
        assert f"jsctl-{'-'.join(words)} - " in text
        missing = [one for one in wanted(words) if one not in text]
        assert not missing, (words, missing)


def reader_of(page: Path) -> list[str] | None:
    """The program that shows it, as text that is not cut into pages and has wide lines."""
    if which("groff"):
        wide = ("-rLL=1000n", "-rLT=1000n", "-P-cbou")
        return ["groff", "-man", "-Tutf8", "-ww", *wide, str(page)]
    if which("mandoc"):
        return ["mandoc", "-T", "utf8", "-O", "width=1000", str(page)]
    return ["man", "-l", str(page)] if which("man") else None


def plain(text: str) -> str:
    """Without what a terminal would make bold of."""
    return re.sub(r"\x1b\[[\d;]*m|.\x08", "", text).replace("−", "-").replace("‐", "-")
