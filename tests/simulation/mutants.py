"""All planted bugs, sought by the tests that plant them; and the table of what found each.

A plugin of pytest, and what starts pytest with it.
"""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPTION = "--planted-table"
HEAD = """# Planted bugs

What the simulator has to find: bugs that tests plant in the broker, one at a time. Of each this
says the plan that showed it, and the check that failed; the same plan passes without it. The tests
are those marked `planted` in [tests/simulation](../tests/simulation); written by
`python -m tests.simulation --mutants docs/planted-bugs.md`.

| planted bug | found by the plan | what caught it |
|---|---|---|
"""


@dataclass
class Table:
    """Collects what the tests say."""

    path: Path
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    missed: int = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test is over, or its set-up or its end is."""
        self.missed += report.failed
        if report.when == "teardown":
            for bug, seen in report.user_properties:
                assert isinstance(seen, tuple | list), "see conftest"
                plan, told = seen
                self.rows.append((bug, plan, told.replace("|", "/")))

    def pytest_sessionfinish(self) -> None:
        """All are found, or none is told of."""
        if not self.missed:
            self.path.write_text(str(self))

    def __str__(self) -> str:
        lines = [f"| {bug} | `{plan}` | {told} |" for bug, plan, told in sorted(self.rows)]
        return HEAD + "\n".join(lines) + f"\n\n{len(self.rows)} bugs, all found.\n"


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
