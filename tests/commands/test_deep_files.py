"""Files and values that are nested without end: one line, as for others that are none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.testing import BrokerFactory
from tests.commands.conftest import Result

Run = Callable[..., Result]
DEEP = "[" * 100_000
LINES = (
    "stream add --config {file}",
    "stream edit S --config {file} -f",
    "stream add T --defaults --subjects t --mirror {{{deep}",
    "consumer add S --config {file}",
    "errors ls --errors {file}",
    "errors validate {file}",
    "server check exporter --config {file}",
)


@pytest.mark.processes
def test_what_is_nested_without_end(cli: Run, tmp_path: Path, jsctl_broker: BrokerFactory) -> None:
    at = ("--server", jsctl_broker("-js").url)
    made = cli(*at, "stream", "add", "S", "--subjects", "s", "--defaults")
    assert made.code == 0, made
    file = tmp_path / "deep.json"
    file.write_text(DEEP)
    for line in LINES:
        words = [word.format(file=file, deep='"name":' + DEEP) for word in line.split()]
        found = cli(*at, *words)
        assert (found.code, found.out) == (1, ""), line
        told = found.err.splitlines()[0]
        assert told.startswith("jsctl: error: "), line
        assert "nested too deeply" in told or "not YAML" in told, (line, told[:200])
