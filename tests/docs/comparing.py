"""Whether a command says what a document shows: the one list of what may be another each time."""

import re
from collections.abc import Sequence
from difflib import unified_diff

ANY = "..."
"""A line of a document that stands for any number of lines."""

VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[ ]?\+0[0:]+( UTC)?)?"), "DATE"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?\b"), "CLOCK"),
    (re.compile(r"\b(\d+[dhm])*\d+\.\d+m?s\b|\b\d+(\.\d+)?(µs|ms|ns)\b"), "TIME"),
    (re.compile(r"\((\d+[dhm])*[\d.]+m?s\)"), "(TIME)"),
    (re.compile(r"\$JS\.ACK\.[\w.]+"), "ACK"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "JWT"),
    (re.compile(r"\bS?[ACNOSUX][A-Z2-7]{55}\b"), "KEY"),
    (re.compile(r"_INBOX\.[\w.]+\*?"), "INBOX"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), "ADDRESS"),
    (re.compile(r"\b(?=\w*\d)(?=\w*[A-Z])[A-Za-z0-9]{22}\b"), "ID"),
    (re.compile(r"\bcid:\d+"), "cid:N"),
    (re.compile(r"\b[\d.]+ [KM]?i?B compressed"), "SIZE compressed"),
    (re.compile(r"^( *(?:Client ID|cid): *)\d+", re.MULTILINE), r"\1N"),
    (re.compile(r"\b\d+\.\d+\.\d+(-[\w.]+)?\b"), "VERSION"),
    (re.compile(r"─+|[ ]{2,}"), " "),
    (re.compile(r"[ ]+$", re.MULTILINE), ""),
)
"""Moments, spans of time that were measured, keys, what servers number and name, addresses, what
compression saved, and the width of columns, which follows from all that. Spans that were set, as
24h0m0s, are compared."""


def normal(text: str) -> str:
    """What is left to be compared."""
    for pattern, word in VOLATILE:
        text = pattern.sub(word, text)
    return text.rstrip()


def says(shown: Sequence[str], told: str) -> bool:
    """Whether a command told what is shown; where nothing is, anything will do."""
    if not shown:
        return True
    parts = [re.escape(f"{normal(one)}\n") if one else "" for one in pieces(shown)]
    return re.fullmatch(r"(?:.*\n)*?".join(parts), normal(told) + "\n") is not None


def pieces(shown: Sequence[str]) -> list[str]:
    """What stands between lines that stand for any, with a line break behind each line."""
    found = [""]
    for line in shown:
        if line.strip() == ANY:
            found.append("")
        else:
            found[-1] += f"{line}\n"
    return found


def difference(shown: Sequence[str], told: str) -> str:
    """To be read by who has to mend it."""
    left, right = normal("\n".join(shown)).splitlines(), normal(told).splitlines()
    return "\n".join(unified_diff(left, right, "the document", "the command", lineterm=""))
