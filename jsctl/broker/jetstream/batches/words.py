"""What is told of batches: the words of the protocol and of advisories."""

from enum import Enum
from typing import NamedTuple


class Abandoned(Enum):
    """Why an atomic batch was given up."""

    TIMEOUT = "timeout"
    LARGE = "large"
    INCOMPLETE = "incomplete"
    UNSUPPORTED = "unsupported"


class BatchEnd(NamedTuple):
    """An atomic batch was given up; its publisher may never be told."""

    id: bytes
    why: Abandoned
