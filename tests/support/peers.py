"""Cases that only the real server runs: they are tried again where they fail.

They show that a claim holds for it too. What it does a moment too late on a busy machine (the
statistics of a peer that it wants before it places a stream, an answer after a stop) says nothing
of ours; a claim that is wrong fails each time. Cases of ours are never tried again.
"""

import gc
import sys

import pytest

THEIRS = "nats-server"
"""As tests name it in their parameters, alone or once for each end of a link."""
TRIES = 3
BETWEEN_S = 5
"""Enough for the next round of statistics of a young server."""


def is_of_peer(item: pytest.Item) -> bool:
    """Whether nothing but the real server runs in this case."""
    if item.get_closest_marker("of_peer") is not None:
        return True
    spec = getattr(item, "callspec", None)
    parts: list[object] = []
    for value in spec.params.values() if spec else ():
        parts += value if isinstance(value, tuple) else (value,)
    return THEIRS in parts and not any(str(one).startswith("jsctl") for one in parts)


def try_again(items: list[pytest.Item]) -> None:
    """Mark the cases of the peer; the closing line counts what was tried again."""
    for item in items:
        if is_of_peer(item):
            item.add_marker(pytest.mark.flaky(reruns=TRIES - 1, reruns_delay=BETWEEN_S))


def forget_attempts() -> None:
    """Nothing that failed attempts left open is told of in a later test, as a flaw of that."""
    sys.last_type = sys.last_value = sys.last_traceback = None  # They hold all its variables.
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        gc.collect()
    finally:
        sys.unraisablehook = hook
