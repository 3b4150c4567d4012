"""How this tool answers a line of a table."""

import io
import sys

import pytest

from jsctl.cli import main
from tests.commands.parity.conftest import Line, Said
from tests.commands.parity.stories import Own, Side
from tests.support.nats_tool import without_hints


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Own:
    """This tool, in this process, where a side is."""

    def run(side: Side, line: Line) -> Said:
        with monkeypatch.context() as patch:
            for key, value in {**side.environment(), **dict(line.variables)}.items():
                patch.setenv(key, value)
            patch.setenv("COLUMNS", "40")  # nothing is cut in a pipe
            patch.chdir(side.folder)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.given)))
            capfd.readouterr()
            code = main(line.words)
            captured = capfd.readouterr()
        return Said(code, captured.out, without_hints(captured.err))

    return run
