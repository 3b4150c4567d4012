"""Options and import path of the raft tests."""

import sys
from pathlib import Path

import pytest

_ROOT = str(Path(__file__).resolve().parents[3])
if _ROOT not in sys.path:  # The shared helpers are imported as tests.broker.raft.*
    sys.path.insert(0, _ROOT)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite-transcripts`: take the present behaviour as the expected one; review the diff."""
    parser.addoption("--rewrite-transcripts", action="store_true", default=False)
