"""Texts in lines that are about as long as each other, and how much room there is for them."""

import os
from collections.abc import Mapping

WIDTH = 80
"""Where nobody says otherwise."""
_PENALTY = 64
"""Of a line that ends inside a sentence."""
_PAUSES = ".,:;"
_WORST = (1 << 62, 0)


def help_width(environ: Mapping[str, str]) -> int:
    """Of a page on standard output: COLUMNS, or the terminal's own."""
    told = environ.get("COLUMNS", "")
    if told.isascii() and told.isdecimal() and 0 < len(told) < len("10000"):
        return int(told) or WIDTH
    try:
        return os.get_terminal_size(1).columns or WIDTH
    except OSError:
        return WIDTH


def wrapped(text: str, width: int) -> list[str]:
    """Its words in lines of at most so many letters, but for a word that is longer.

    The squares of what the lines lack are least, with a penalty where one ends inside a sentence;
    the last line may be as short as it is. So the pages of `nats` are wrapped.
    """
    words = text.split()
    if len(text) <= width or not words:
        return [" ".join(words)]
    best: list[tuple[int, int]] = [(0, 0)]
    begins: list[int] = [0]
    for end in range(1, len(words) + 1):
        length, found, begin = -1, _WORST, end - 1
        for at in range(end - 1, -1, -1):
            length += len(words[at]) + 1
            if length > width and at < end - 1:
                break
            over, lack = _weight(words[end - 1], width - length, last=end == len(words))
            score = (best[at][0] + over, best[at][1] + lack)
            if score < found:
                found, begin = score, at
        best.append(found)
        begins.append(begin)
    lines: list[str] = []
    end = len(words)
    while end:
        lines.append(" ".join(words[begins[end] : end]))
        end = begins[end]
    return lines[::-1]


def _weight(word: str, room: int, *, last: bool) -> tuple[int, int]:
    """Of a line that ends with this word: how much too long it is counts before all else."""
    if last and room >= 0:
        return 0, 0
    penalty = 0 if word[-1] in _PAUSES else _PENALTY
    return (room * room, penalty) if room < 0 else (0, room * room + penalty)
