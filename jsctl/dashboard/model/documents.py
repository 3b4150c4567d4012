"""Typed access to JSON documents that may lack anything.

A report of a thousand streams is read every few seconds; decoding all of it into the classes of
`jsctl.api` would take longer than the pause in between. So lists are picked apart with these,
and one asset is decoded in full when somebody opens it.
"""

from collections.abc import Mapping
from typing import TypeAlias

Document: TypeAlias = Mapping[str, object]
NOTHING: Document = {}


def text(document: Document, key: str) -> str:
    """A text, empty when it is missing."""
    found = document.get(key)
    return found if isinstance(found, str) else ""


def integer(document: Document, key: str) -> int:
    """A whole number, 0 when it is missing."""
    found = document.get(key)
    return int(found) if isinstance(found, int | float) else 0


def real(document: Document, key: str) -> float:
    """A number, 0 when it is missing."""
    found = document.get(key)
    return float(found) if isinstance(found, int | float) else 0.0


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
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()
