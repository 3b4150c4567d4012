"""The tree of commands is that of `nats` 0.5.1; what is not is listed with its reason.

The list stands in docs/differences.md and nowhere else: a row that nothing needs any more fails
as well as a difference without a row. A row for a group covers all that is below it, and `*`
stands for any words.
"""

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from jsctl.cli import root, walk
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option, options_of
from jsctl.settings import GLOBAL_FLAGS

TREE = json.loads((Path(__file__).parent / "nats-0.5.1-commands.json").read_text())
"""Words -> commands, aliases, args and flags below them, as the program's help tells."""

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
BEGIN, END = "<!-- tree: begin -->\n", "<!-- tree: end -->\n"
ROW = re.compile(r"^\| `([^`]+)` \| (missing|extra|other) \| (.+) \|$")
EVERYWHERE = {name for flag in GLOBAL_FLAGS for name in (flag.name, *flag.aliases)}
EVERYWHERE |= {"help", "version"}

Difference = tuple[str, str]
"""Words, and `missing`, `extra` or `other`."""


def differences(words: tuple[str, ...], inherited: tuple[Option, ...]) -> Iterator[Difference]:
    """Between the command or group of these words, with all below it, and the tree of `nats`."""
    node = walk(words).node if words else root()
    place, wanted = " ".join(words), TREE[" ".join(words) or "(global)"]
    if words:
        for kind, alias in both(set(node.aliases), set(wanted.get("aliases", []))):
            yield f"{place} ({alias})", kind
    if isinstance(node, Group):
        names = [one.name for one in node.commands if not one.hidden]
        for kind, name in both(set(names), set(wanted.get("commands", []))):
            yield f"{place} {name}".strip(), kind
        known = node.options if words else ()
        if words:
            yield from flag_differences(place, node.options, inherited, wanted.get("flags", {}))
        for name in names:
            if name in wanted.get("commands", []):
                yield from differences((*words, name), (*inherited, *known))
        return
    yield from leaf_differences(place, node, inherited, wanted)


def leaf_differences(
    place: str,
    node: Command,
    inherited: tuple[Option, ...],
    wanted: Mapping[str, dict[str, object]],
) -> Iterator[Difference]:
    if [usage(one) for one in node.arguments] != wanted.get("args", []):
        yield f"{place} <>", "other"
    yield from flag_differences(place, options_of(node), inherited, wanted.get("flags", {}))


def flag_differences(
    place: str,
    own: tuple[Option, ...],
    inherited: tuple[Option, ...],
    wanted: Mapping[str, object],
) -> Iterator[Difference]:
    """Flags that a group above has may be told there or here."""
    shown = {one.name for one in own if not one.hidden}
    every = {one.name: one for one in (*inherited, *own)}
    theirs = {name[2:]: told for name, told in wanted.items() if name[2:] not in EVERYWHERE}
    for kind, name in both(shown, set(theirs)):
        if kind == "extra" or name not in every:
            yield f"{place} --{name}", kind
    for name, told in theirs.items():
        if name in every and traits(every[name]) != told_traits(told):
            yield f"{place} --{name}", "other"


def traits(option: Option) -> tuple[str, bool, bool, bool]:
    """The short form, whether there is a `--no-`, may be repeated, takes a value."""
    several = option.kind in (Kind.LIST, Kind.MAP)
    valued = option.kind not in (Kind.FLAG, Kind.SWITCH)
    return option.short, option.kind is Kind.SWITCH, several, valued


def told_traits(told: object) -> tuple[str, bool, bool, bool]:
    assert isinstance(told, dict)
    words = told.get("short", ""), told.get("no"), told.get("repeat"), told.get("value")
    return words[0], bool(words[1]), bool(words[2]), bool(words[3])


def usage(argument: Argument) -> str:
    return f"<{argument.name}>" if argument.required else f"[<{argument.name}>]"


def both(ours: set[str], theirs: set[str]) -> Iterator[tuple[str, str]]:
    yield from (("extra", name) for name in sorted(ours - theirs))
    yield from (("missing", name) for name in sorted(theirs - ours))


def rows() -> list[Difference]:
    _, begin, rest = PAGE.read_text().partition(BEGIN)
    listed, end, _ = rest.partition(END)
    assert begin and end
    lines = listed.splitlines()[2:]
    found = [ROW.match(line) for line in lines]
    assert None not in found, [line for line, row in zip(lines, found, strict=True) if not row]
    return [(row[1], row[2]) for row in found if row]


def covers(row: Difference, found: Difference) -> bool:
    return row[1] == found[1] and fnmatchcase(found[0], row[0])


def test_every_difference_is_listed_and_every_listed_one_is_there() -> None:
    found, listed = list(differences((), ())), rows()
    assert [one for one in found if not any(covers(row, one) for row in listed)] == []
    assert [row for row in listed if not any(covers(row, one) for one in found)] == []


def test_a_missing_command_or_flag_is_found() -> None:
    """The comparison sees what it is for: a tree with more in it differs just there."""
    before = set(differences(("stream", "cluster"), walk(["stream"]).inherited))
    kept = TREE["stream cluster"], TREE["stream cluster step-down"]
    try:
        TREE["stream cluster"] = {**kept[0], "commands": [*kept[0]["commands"], "fly"]}
        flags = {**kept[1]["flags"], "--force": {}, "--high": {"value": "M"}}
        TREE["stream cluster step-down"] = {**kept[1], "flags": flags, "args": []}
        after = set(differences(("stream", "cluster"), walk(["stream"]).inherited))
    finally:
        TREE["stream cluster"], TREE["stream cluster step-down"] = kept
    assert after - before == {
        ("stream cluster fly", "missing"),
        ("stream cluster step-down --force", "other"),
        ("stream cluster step-down --high", "missing"),
        ("stream cluster step-down <>", "other"),
    }
