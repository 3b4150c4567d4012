"""All planted bugs, sought by the tests that plant them; and the table of what found each.

A plugin of pytest, and what starts pytest with it.
"""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.simulation.areas import area_of

HERE = Path(__file__).parent
OPTION = "--planted-table"
HEAD = """# Planted bugs

What the simulator has to find: bugs that tests plant in the broker, one at a time. Of each this
says what it is in, the plan that showed it, and the check that failed; the same plan passes without
it. The tests are those marked `planted` in [tests/simulation](../tests/simulation); written by
`python -m tests.simulation --mutants docs/planted-bugs.md`.

| in | planted bug | found by the plan | what caught it | test |
|---|---|---|---|---|
"""
ROW = re.compile(r"^\| .* \| `(\S+)` \|$", re.MULTILINE)


@dataclass
class Table:
    """Collects what the tests say."""

    path: Path
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    missed: int = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test is over, or its set-up or its end is."""
        self.missed += report.failed
        if report.when == "teardown":
            for bug, seen in report.user_properties:
                assert isinstance(seen, tuple | list), "see conftest"
                plan, told = seen
                test, told = tested(report.nodeid), told.partition("\n")[0].replace("|", "/")
                self.rows.append((area_of(bug, test), bug, plan, told, test))

    def pytest_sessionfinish(self) -> None:
        """All are found, or none is told of."""
        if not self.missed:
            self.path.write_text(str(self))

    def __str__(self) -> str:
        lines = [
            f"| {area} | {bug} | `{plan}` | {told} | `{test}` |"
            for area, bug, plan, told, test in sorted(self.rows)
        ]
        return HEAD + "\n".join(lines) + f"\n\n{len(self.rows)} bugs, all found.\n"


def tested(node: str) -> str:
    """How the table names a test, from its whole name."""
    return node.rpartition("/")[2]


def listed(table: str) -> set[str]:
    """The tests that a table names."""
    return set(ROW.findall(table))


def existing() -> set[str]:
    """The tests that plant bugs, as the table names them."""
    words = ["--collect-only", "-q", "-p", "no:xdist", "-m", "planted", str(HERE)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=True
    )
    return {tested(line) for line in done.stdout.splitlines() if "::" in line}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the table goes."""
    parser.addoption(OPTION)


def pytest_configure(config: pytest.Config) -> None:
    """Collect, if asked for."""
    path = config.getoption(OPTION)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(Path(path)))


def seek(path: str) -> int:
    """Run the tests that plant bugs; write the table if all are found. The exit status."""
    # However busy the machine is, a search ends after so many plans.
    words = ["-v", "--timeout", "0", "-m", "planted", "-p", __name__, OPTION, path, str(HERE)]
    return subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode
