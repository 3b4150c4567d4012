"""Steps of the interpreter, which no load of the machine changes."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(work: Callable[[], object]) -> int:
    """How many the functions take that this calls."""
    found = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal found
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        found += event == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return found
