"""No dead code in the broker: what nothing in jsctl names, outside its own definition, has to go.

By names alone, over the syntax trees: a name that is written anywhere, as itself or behind a dot,
keeps every definition of that name. So nothing that is used is ever reported, and what is left is
dead, unless somebody outside calls it: those are in `CALLED_FROM_OUTSIDE`, with the caller.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
BROKER = "jsctl/broker"

BY_ASYNCIO = "asyncio calls its protocols"
BY_TRANSCRIPTS = "transcripts of raft in tests: what a reader compares"
CALLED_FROM_OUTSIDE = {
    "connection_made": BY_ASYNCIO,
    "connection_lost": BY_ASYNCIO,
    "data_received": BY_ASYNCIO,
    "eof_received": BY_ASYNCIO,
    "get_buffer": BY_ASYNCIO,
    "buffer_updated": BY_ASYNCIO,
    "pause_writing": BY_ASYNCIO,
    "resume_writing": BY_ASYNCIO,
    "do_handshake": "asyncio asks what its TLS context has made",
    "describe_message": BY_TRANSCRIPTS,
    "describe_ready": BY_TRANSCRIPTS,
    "describe_state": BY_TRANSCRIPTS,
    "check_totals": "tests and the simulator: an invariant",
    "unlock": "tests, which open a store twice in one process",
    "singly": "the simulator and benchmarks, which look at what is published one by one",
}
"""Names of definitions, and who uses them where jsctl itself writes no such name."""

STILL_DEAD: set[str] = set()
"""What is to go yet, or to be called. The lists only get shorter: an entry that is no longer needed
is an error too."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
NAMED = Function | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Defined:
    """A function, method, class or constant."""

    name: str
    path: str
    line: int
    uses: int
    """How often it names itself."""


@dataclass(slots=True)
class Module:
    """What is looked at; trees of all files would keep the garbage collector busy."""

    used: Counter[str] = field(default_factory=Counter)
    """How often each name is used: read by itself or behind a dot, or given as a keyword."""
    defined: list[Defined] = field(default_factory=list)
    classes: list[tuple[str, int]] = field(default_factory=list)
    """Name and line of each."""


def constants(node: ast.stmt) -> Iterator[str]:
    """Names that a statement of a module or a class gives a value."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id


def module(text: str, path: str) -> Module:
    """Public functions, classes and constants, public methods of classes, and all names used."""
    found = Module()
    tree = ast.parse(text)
    for node in tree.body:
        is_class = isinstance(node, ast.ClassDef)
        uses: Counter[str] = Counter()
        methods = []
        for part in ast.iter_child_nodes(node) if is_class else [node]:
            inside = names_in(part)
            uses.update(inside)
            if is_class and isinstance(part, Function):
                methods.append(Defined(part.name, path, part.lineno, inside[part.name]))
        names = [*constants(node), *([node.name] if isinstance(node, NAMED) else [])]
        found.defined += [Defined(name, path, node.lineno, uses[name]) for name in names]
        found.defined += methods
        found.used.update(uses)
    found.classes = [(one.name, one.lineno) for one in walk(tree) if isinstance(one, ast.ClassDef)]
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, in another order and half the time: it is most of what this takes."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                todo += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                todo.append(value)


def names_in(node: ast.AST) -> Counter[str]:
    """How often each name is used: read by itself or behind a dot, or given as a keyword."""
    found: Counter[str] = Counter()
    for inner in walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            found[inner.id] += 1
        elif isinstance(inner, ast.Attribute):
            found[inner.attr] += 1
        elif isinstance(inner, ast.keyword) and inner.arg:
            found[inner.arg] += 1
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            found.update(annotation(inner.value))
    return found


def annotation(text: str) -> list[str]:
    """Names in a string that is an annotation; texts have blanks around most words."""
    return [text] if text.isidentifier() and text[:1].isupper() else []


def dead(files: dict[str, Module], inside: str) -> list[Defined]:
    """What is defined `inside` and named nowhere else in the files."""
    used: Counter[str] = Counter()
    for one in files.values():
        used.update(one.used)
    return [
        one
        for place, found in files.items()
        if place.startswith(inside)
        for one in found.defined
        if not one.name.startswith("_") and used[one.name] == one.uses
    ]


@pytest.fixture(scope="module")
def sources() -> dict[str, Module]:
    """Every module of jsctl."""
    paths = {str(one.relative_to(ROOT)): one for one in sorted((ROOT / "jsctl").rglob("*.py"))}
    return {name: module(path.read_text(), name) for name, path in paths.items()}


def test_everything_public_is_used(sources: dict[str, Module]) -> None:
    found = [
        f"{one.path}:{one.line} {one.name}"
        for one in dead(sources, BROKER)
        if one.name not in CALLED_FROM_OUTSIDE and one.name not in STILL_DEAD
    ]
    assert not found, "only tests use these, if anybody:\n" + "\n".join(found)


def test_the_lists_name_only_what_is_dead(sources: dict[str, Module]) -> None:
    needless = (STILL_DEAD | set(CALLED_FROM_OUTSIDE)) - {one.name for one in dead(sources, BROKER)}
    assert not needless, f"called by jsctl or gone, so take out of the lists: {sorted(needless)}"


def test_class_names_are_unique(sources: dict[str, Module]) -> None:
    places: dict[str, list[str]] = {}
    for path, one in sources.items():
        for name, line in one.classes if path.startswith(BROKER) else ():
            places.setdefault(name, []).append(f"{path}:{line}")
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice, f"one name for several classes: {twice}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def used(): pass\nused()", []),
        ("def dead(): pass", ["dead"]),
        ("def itself(): itself()", ["itself"]),
        ("def _private(): pass", []),
        ("LIMIT = 3\nOTHER: int = LIMIT", ["OTHER"]),
        ("class Dead:\n    def method(self): pass", ["Dead", "method"]),
        ("class Used:\n    def method(self): pass\nUsed().method()", []),
        ("class Used: pass\ndef dead(one: 'Used'): pass", ["dead"]),
    ],
)
def test_what_is_dead_is_found(text: str, expected: list[str]) -> None:
    texts = {"broker/a.py": text, "other.py": "def unseen(): pass"}
    files = {path: module(text, path) for path, text in texts.items()}
    assert [one.name for one in dead(files, "broker/")] == expected


def test_a_name_elsewhere_keeps_a_definition() -> None:
    texts = {"broker/a.py": "def called(): pass", "b.py": "x.called"}
    files = {path: module(text, path) for path, text in texts.items()}
    assert not dead(files, "broker/")
