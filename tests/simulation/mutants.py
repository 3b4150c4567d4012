"""All planted bugs, sought; and the table of what found each."""

from dataclasses import field
from pathlib import Path

import pytest

from jsctl.dataclass import dataclass

HERE = Path(__file__).parent
HEAD = """# Planted bugs

What the simulator has to find: bugs that tests plant in the broker, one at a time. Of each this
says the plan that showed it, and the check that failed; the same plan passes without it. The tests
are those marked `planted` in [tests/simulation](../tests/simulation); written by
`python -m tests.simulation --mutants docs/planted-bugs.md`.

| planted bug | found by the plan | what caught it |
|---|---|---|
"""


@dataclass(slots=True)
class Table:
    """A plugin of pytest that collects what the tests say."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test is over, or its set-up or its end is."""
        if report.failed:
            self.failed.append(report.nodeid)
        if report.when == "teardown":
            for bug, seen in report.user_properties:
                assert isinstance(seen, tuple), "see conftest"
                plan, told = seen
                self.rows.append((bug, plan, told.replace("|", "/")))

    def __str__(self) -> str:
        lines = [f"| {bug} | `{plan}` | {told} |" for bug, plan, told in sorted(self.rows)]
        return HEAD + "\n".join(lines) + f"\n\n{len(self.rows)} bugs, all found.\n"


def seek(path: str) -> int:
    """Run the tests that plant bugs; write the table if all are found. The exit status."""
    table = Table()
    status = pytest.main(["-q", "-m", "planted", str(HERE)], plugins=[table])
    if table.failed or status:
        print("\n".join(["not found:", *table.failed]))
        return 1
    Path(path).write_text(str(table))
    return 0
