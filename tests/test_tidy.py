"""The house rules that a machine can check, read off the repository itself.

There is no exclude list: a rule that cannot be met everywhere is not a rule.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

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


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_files_functions_and_lines_are_short(path: Path) -> None:
    text = path.read_text()
    lines = text.split("\n")
    assert len(lines) - 1 <= FILE_LINES_MAX, f"{len(lines) - 1} lines"
    long_lines = [n for n, line in enumerate(lines, 1) if len(line) > LINE_LENGTH_MAX]
    assert not long_lines, f"lines over {LINE_LENGTH_MAX} characters: {long_lines}"
    sizes = {
        f.name: f.end_lineno - f.lineno + 1
        for f in functions(ast.parse(text))
        if f.end_lineno is not None
    }
    over = {name: size for name, size in sizes.items() if size > FUNCTION_LINES_MAX}
    assert not over, f"functions over {FUNCTION_LINES_MAX} lines: {over}"


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_no_banned_call(path: Path) -> None:
    name = name_of(path)
    banned = dict(BANNED_CALLS)
    if name.startswith("tests/") and name not in WAIT_HELPERS:
        banned |= BANNED_IN_TESTS
    found = [
        f"{node.lineno}: {dotted(node.func)} ({banned[dotted(node.func)]})"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and dotted(node.func) in banned
    ]
    assert not found


@pytest.mark.parametrize(
    "path", [p for p in PYTHON if name_of(p).startswith("jsctl/")], ids=name_of
)
def test_modules_say_what_they_are(path: Path) -> None:
    text = path.read_text()
    if not text.strip():
        return
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module starts with a docstring"
    missing = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not missing, f"public names without a docstring: {missing}"


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_no_debts_and_no_dead_code(path: Path) -> None:
    found = [
        number
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if re.search(r"#\s*(TODO|FIXME|XXX|HACK)\b", line)
        or re.match(r"\s*#\s*(def|class|return|import|if .*:$|for .*:$)\b.*[):]$", line)
    ]
    assert not found, f"lines {found}"


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
