"""What layers cannot say: no circle of imports anywhere, and no package too large to be one room.

Imports for types count, and those inside functions: a reader has to follow them as well. What
still breaks a rule stands in a list of packages. The lists only get shorter: an entry that is no
longer needed is an error too.
"""

from collections import Counter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE_FILES_MAX = 20


def circles_of(graph: grimp.ImportGraph) -> list[frozenset[str]]:
    """Every largest set of modules of which each imports each other, directly or not."""
    found: set[frozenset[str]] = set()
    for module in graph.modules:
        if graph.direct_import_exists(importer=module, imported=module):
            found.add(frozenset({module}))
        both = graph.find_upstream_modules(module) & graph.find_downstream_modules(module)
        if both - {module}:
            found.add(frozenset(both | {module}))
    return sorted(found, key=sorted)


def told(graph: grimp.ImportGraph, circle: frozenset[str]) -> str:
    """A circle as the imports that make it."""
    lines = (
        f"{module} -> {', '.join(sorted(graph.find_modules_directly_imported_by(module) & circle))}"
        for module in sorted(circle)
    )
    return "\n".join(lines)


def package_of(module: str) -> str:
    """The package in whose directory the file of a module is."""
    is_package = (ROOT / module.replace(".", "/")).is_dir()
    return module if is_package else module.rpartition(".")[0]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Who imports whom in the whole of jsctl."""
    return grimp.build_graph("jsctl", cache_dir=None, exclude_type_checking_imports=False)


def test_no_circle_of_imports(graph: grimp.ImportGraph) -> None:
    found = [told(graph, circle) for circle in circles_of(graph)]
    assert not found, "\n\n".join(found)


def test_packages_are_small(graph: grimp.ImportGraph) -> None:
    sizes = Counter(package_of(module) for module in graph.modules)
    crowded = {name: size for name, size in sizes.items() if size > PACKAGE_FILES_MAX}
    assert not crowded, f"more than {PACKAGE_FILES_MAX} files: {crowded}"


@pytest.mark.parametrize(
    ("imports", "circles"),
    [
        ("a>b b>c a>c", []),
        ("a>b b>a c>a", ["ab"]),
        ("a>b b>c c>a c>d", ["abc"]),
        ("a>b b>a b>c c>d d>c", ["ab", "cd"]),
        ("a>a a>b", ["a"]),
    ],
)
def test_circles_are_found(imports: str, circles: list[str]) -> None:
    graph = grimp.ImportGraph()
    for one in imports.split():
        importer, imported = one.split(">")
        graph.add_import(importer=importer, imported=imported)
    assert circles_of(graph) == [frozenset(circle) for circle in circles]


def test_imports_for_types_and_in_functions_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "rooms"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "owner.py").write_text("def make():\n    from rooms.child import Child\n")
    (package / "child.py").write_text(
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from rooms.owner import make\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    graph = grimp.build_graph("rooms", cache_dir=None)
    assert circles_of(graph) == [frozenset({"rooms.owner", "rooms.child"})]
