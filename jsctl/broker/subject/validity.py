"""Which byte strings are subjects (client protocol 1.7).

A subject is tokens separated by `.`. In a pattern a token may be `*` (one token) or, at the
end, `>` (one or more tokens); both are wildcards only when they are the whole token.
"""

import re

SUBJECT_BYTES_MAX = 16 * 1024
"""Longest subject, pattern or queue name of a configuration. Clients say up to 4 KiB by default;
a line between servers has room for 64 KiB, with a reply and queue names beside the subject."""

_TOKEN = rb"[^.\x20\t\r\n\f]+"
_PATTERN = re.compile(rb"(?:(?!>\.)" + _TOKEN + rb"(?:\.|\Z))*(?<!\.)\Z")
_LITERAL = re.compile(rb"(?:(?![*>](?:\.|\Z))" + _TOKEN + rb"(?:\.|\Z))*(?<!\.)\Z")
_WILDCARD = re.compile(rb"(?:^|\.)(?:\*(?:\.|\Z)|>\Z)")


def is_valid_subject(subject: bytes) -> bool:
    """Whether one may subscribe to it: no empty token, no whitespace, `>` only at the end."""
    return bool(subject) and _PATTERN.match(subject) is not None


def is_valid_literal(subject: bytes) -> bool:
    """Whether one may publish to it: a valid subject without wildcards."""
    return bool(subject) and _LITERAL.match(subject) is not None


def is_too_long(*texts: str) -> bool:
    """Whether one of these is longer than a subject of a configuration may be."""
    return any(len(text.encode()) > SUBJECT_BYTES_MAX for text in texts)


def has_wildcard(subject: bytes) -> bool:
    """Whether a valid subject has a wildcard token, so that it is a pattern."""
    if b"*" not in subject and b">" not in subject:
        return False
    return _WILDCARD.search(subject) is not None


def literal_start(pattern: bytes) -> bytes:
    """What every subject begins with that a pattern matches; it may leave out some."""
    return pattern.partition(b"*")[0].partition(b">")[0]


def tokens(subject: bytes) -> list[bytes]:
    """The tokens, in order."""
    return subject.split(b".")
