"""Seeds as parameters of a test: which `make test` runs, and which only `make test-mutants`."""

from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet


def kept(found: Sequence[tuple[object, ...]], newest: int) -> list[ParameterSet]:
    """The `newest` for `make test`, and all of them for `make test-mutants`: the code has changed
    since, so by now the older ones bring about what any other seed may."""
    older = len(found) - newest
    return [
        pytest.param(*one, marks=[pytest.mark.mutants] if at < older else [])
        for at, one in enumerate(found)
    ]
