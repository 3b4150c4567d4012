"""Typed access to JSON documents that may lack anything.

A report of a thousand streams is read every few seconds; decoding all of it into the classes of
`jsctl.api` would take longer than the pause in between. So lists are picked apart with these,
and one asset is decoded in full when somebody opens it.
"""

from collections.abc import Mapping
from typing import TypeAlias

Document: TypeAlias = Mapping[str, object]
NOTHING: Document = {}
NUMBER_MAX = 2**64
"""No count of a server is larger. JSON knows numbers that no arithmetic of ours survives."""


def text(document: Document, key: str) -> str:
    """A text, empty when it is missing."""
    found = document.get(key)
    return _sound(found) if isinstance(found, str) else ""


def integer(document: Document, key: str) -> int:
    """A whole number, 0 when it is missing."""
    return int(_bounded(document.get(key)))


def real(document: Document, key: str) -> float:
    """A number, 0 when it is missing."""
    return float(_bounded(document.get(key)))


def flag(document: Document, key: str) -> bool:
    """Whether a key is there and true."""
    return document.get(key) is True


def section(document: Document, *keys: str) -> Document:
    """A document inside, empty when it is missing."""
    for key in keys:
        found = document.get(key)
        if not isinstance(found, dict):
            return NOTHING
        document = found
    return document


def sections(document: Document, key: str) -> list[Document]:
    """The documents of a list."""
    found = document.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def texts(document: Document, key: str) -> tuple[str, ...]:
    """The texts of a list."""
    found = document.get(key)
    if not isinstance(found, list):
        return ()
    return tuple(_sound(one) for one in found if isinstance(one, str))


def _sound(found: str) -> str:
    """The text without halves of characters, which JSON can name but nobody can write out."""
    return found if found.isascii() else found.encode("utf-8", "replace").decode("utf-8")


def _bounded(found: object) -> float:
    """What is a number, within limits; 0 for anything else."""
    if not isinstance(found, int | float) or found != found:
        return 0
    return max(-NUMBER_MAX, min(NUMBER_MAX, found))
