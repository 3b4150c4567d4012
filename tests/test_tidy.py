"""The house rules that a machine can check, read off the repository itself.

There is no exclude list: a rule that cannot be met everywhere is not a rule.
"""

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
LINE_LENGTH_MAX = 100

BANNED_CALLS = {
    "asyncio.create_task": "use asyncio.TaskGroup",
    "asyncio.ensure_future": "use asyncio.TaskGroup",
    "asyncio.get_event_loop": "use asyncio.get_running_loop",
    "os.system": "use subprocess with a list",
    "pickle.loads": "decode a declared format",
    "yaml.load": "use yaml.safe_load",
}
BANNED_IN_TESTS = {
    "time.sleep": "wait on a fact with a deadline",
    "asyncio.sleep": "wait on a fact with a deadline",
}
WAIT_HELPERS = {"tests/support/waiting.py"}
"""The one place where tests may pause between two looks at a fact."""


def tracked(*suffixes: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    paths = (ROOT / name for name in names if name.endswith(suffixes))
    return [path for path in paths if path.is_file()]


PYTHON = tracked(".py")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@dataclass(frozen=True, slots=True)
class Parts:
    """What rules look at; trees of all files would keep the garbage collector busy."""

    functions: list[tuple[int, str, int]]
    """First line, name, number of lines."""
    calls: list[tuple[int, str]]
    """Line, and what is called, if some of it may be banned."""
    silent: list[str]
    """What is public and has no docstring."""


@cache
def parts_of(path: Path) -> Parts:
    text = text_of(path)
    tree = ast.parse(text, str(path))
    return Parts(list(functions(tree)), list(calls(tree, text)), list(silent(tree)))


def functions(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    """Of statements alone: to look into all expressions, too, takes longer than to parse them."""
    todo: list[ast.stmt | ast.ExceptHandler | ast.match_case] = [*tree.body]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1
        for below in ("body", "orelse", "finalbody", "handlers", "cases"):
            todo += getattr(node, below, ())


def calls(tree: ast.Module, text: str) -> Iterator[tuple[int, str]]:
    """Where there are the words of a banned one, which most files have not."""
    banned = (one.split(".") for one in {**BANNED_CALLS, **BANNED_IN_TESTS})
    if any(all(word in text for word in words) for words in banned):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (called := dotted(node.func)):
                yield node.lineno, called


def silent(tree: ast.Module) -> Iterator[str]:
    if not ast.get_docstring(tree):
        yield "a module starts with a docstring"
    for node in tree.body:
        if (
            isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
            and not ast.get_docstring(node)
        ):
            yield f"{node.lineno}: {node.name} has no docstring"


def long_parts(path: Path) -> Iterator[str]:
    lines = text_of(path).split("\n")
    if len(lines) - 1 > FILE_LINES_MAX:
        yield f"{len(lines) - 1} lines"
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_LENGTH_MAX:
            yield f"{number}: over {LINE_LENGTH_MAX} characters"
    for first, name, size in parts_of(path).functions:
        if size > FUNCTION_LINES_MAX:
            yield f"{first}: {name} has {size} lines"


def banned_calls(path: Path) -> Iterator[str]:
    name = name_of(path)
    banned = dict(BANNED_CALLS)
    if name.startswith("tests/") and name not in WAIT_HELPERS:
        banned |= BANNED_IN_TESTS
    for line, called in parts_of(path).calls:
        if called in banned:
            yield f"{line}: {called} ({banned[called]})"


def silent_names(path: Path) -> Iterator[str]:
    if name_of(path).startswith("jsctl/") and text_of(path).strip():
        yield from parts_of(path).silent


def debts(path: Path) -> Iterator[str]:
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if re.search(r"#\s*(TODO|FIXME|XXX|HACK)\b", line):
            yield f"{number}: a debt"
        if re.match(r"\s*#\s*(def|class|return|import|if .*:$|for .*:$)\b.*[):]$", line):
            yield f"{number}: code in a comment"


def slow_classes(path: Path) -> Iterator[str]:
    """Decision 28. Spark's are declared in processes of Spark's."""
    name = name_of(path)
    if name.startswith("jsctl/") and not name.startswith(("jsctl/spark/", "jsctl/dataclass.py")):
        for number, line in enumerate(text_of(path).split("\n"), 1):
            if re.search(r"^from dataclasses import .*\bdataclass\b|dataclasses\.dataclass", line):
                yield f"{number}: dataclasses.dataclass (use jsctl.dataclass)"


@pytest.mark.parametrize("rule", [long_parts, banned_calls, silent_names, debts, slow_classes])
def test_every_file_keeps_the_rule(rule: Callable[[Path], Iterator[str]]) -> None:
    """One test for all files: a test for each takes longer than looking."""
    found = [f"{name_of(path)}: {breach}" for path in PYTHON for breach in rule(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (long_parts, "x = 1\n" * (FILE_LINES_MAX + 1)),
        (long_parts, "x" * (LINE_LENGTH_MAX + 1)),
        (long_parts, "def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX),
        (banned_calls, "import os\nos.system('x')"),
        (debts, "x = 1  # " + "TODO: y"),
        (debts, "# return " + "f(x)"),
        (slow_classes, "from dataclasses import " + "dataclass, field"),
    ],
)
def test_a_breach_is_found(
    rule: Callable[[Path], Iterator[str]],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.test_tidy.ROOT", tmp_path)
    path = tmp_path / "jsctl" / "one.py"
    path.parent.mkdir()
    path.write_text(text)
    assert list(rule(path))


def test_the_contracts_name_only_what_exists() -> None:
    text = (ROOT / "pyproject.toml").read_text().partition("[tool.importlinter]")[2]
    for module in set(re.findall(r'"(jsctl(?:\.\w+)+)"', text)):
        base = ROOT / module.replace(".", "/")
        assert base.is_dir() or base.with_suffix(".py").is_file(), module


def test_documents_have_one_title() -> None:
    for path in tracked(".md"):
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        titles = re.findall(r"^# .+$", text, flags=re.MULTILINE)
        assert len(titles) == 1, f"{name_of(path)}: {titles}"
