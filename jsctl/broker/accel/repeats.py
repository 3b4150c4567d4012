"""Messages that repeat each other, found in bulk: for the twin in Python.

* *Runs.* When a control line stands again one stride (line, payload, CR LF) further on, all strides
  that are in the chunk are compared column by column: byte j of every stride is one extended slice,
  and the length of its equal prefix bounds the run. So a whole run is framed by as many slices as
  the line has bytes, whatever the payloads contain.
* *Rows.* When messages of one size follow each other with changing replies or subjects, one
  regular expression of that size cuts all of them. Its last alternative swallows the rest, so that
  a row can only begin where the one before ended.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from jsctl.broker.accel.fan import LaneLeg

COLUMNS_FROM = 12
"""Runs shorter than this are compared stride by stride."""

RUN_MAX = 4096
"""Strides compared together, whatever of them turns out to be no run."""

SHAPES_MAX = 512
"""Expressions kept."""

WORD_MAX = 500
"""Longer subjects and replies are none of a row, so that its line has a bound."""

ROWS_LINE_MIN = 2 * WORD_MAX + 64
"""Lines may be so long where rows are looked for, so that none can exceed its maximum."""

WORDS_USUAL = 32
"""Bytes of subject and reply, as far as the output of many rows is foreseen by their size."""

RowText = tuple[bytes, bytes, bytes, bytes]
"""(subject, reply, headers, payload); what is not there is empty."""


class Shape(NamedTuple):
    """What rows have in common; `header_size` is -1 without header blocks."""

    header_size: int
    size: int
    with_reply: bool


def run_length(data: bytes, position: int, line: bytes, stride: int) -> int:
    """How many complete strides from `position` on begin with `line` and end in CR LF."""
    most = min((len(data) - position) // stride, RUN_MAX)
    known = position + (COLUMNS_FROM - 1) * stride
    if most < COLUMNS_FROM or not data.startswith(line, known):
        count = 0
        while (
            count < most
            and data.startswith(line, position)
            and data.startswith(b"\r\n", position + stride - 2)
        ):
            position += stride
            count += 1
        return count
    end = position + most * stride
    for offset in range(len(line)):
        column = data[position + offset : end : stride]
        most = len(column) - len(column.lstrip(line[offset : offset + 1]))
        end = position + most * stride
    for offset, byte in ((stride - 2, b"\r"), (stride - 1, b"\n")):
        column = data[position + offset : end : stride]
        most = len(column) - len(column.lstrip(byte))
        end = position + most * stride
    return most


@lru_cache(SHAPES_MAX)
def row_expression(verb: bytes, shape: Shape) -> re.Pattern[bytes]:
    """Finds rows of a shape, as `RowText`; a rest that is none is one without a subject."""
    word = rb"([^ \t\r\n]{1,%d})" % WORD_MAX
    middle = word + b" " if shape.with_reply else b"()"
    start = re.escape(verb)
    at, size = shape.header_size, shape.size
    if at < 0:
        text = rb"%s%s %s%d\r\n()(.{%d})\r\n|.+" % (start, word, middle, size, size)
    else:
        pattern = rb"%s%s %s%d %d\r\n(.{%d})(.{%d})\r\n|.+"
        text = pattern % (start, word, middle, at, size, at, size - at)
    return re.compile(text, re.DOTALL)


def fixed_size(verb: bytes, shape: Shape) -> int:
    """Bytes of a row besides its subject and reply."""
    size = len(verb) + len(b" %d\r\n\r\n" % shape.size) + shape.size + shape.with_reply
    return size if shape.header_size < 0 else size + len(b"%d " % shape.header_size)


def row_texts(leg: LaneLeg, shape: Shape, rows: list[RowText]) -> bytes:
    """What a leg gets of rows."""
    blank = b" " if shape.with_reply else b""
    infix = leg.infix
    if shape.header_size >= 0 and leg.headers:
        verb = leg.header_verb
        tail = b"%s%d %d\r\n" % (blank, shape.header_size, shape.size)
        return b"".join(
            [
                b"%s%s%s%s%s%s%s\r\n" % (verb, subject, infix, reply, tail, headers, payload)
                for subject, reply, headers, payload in rows
            ]
        )
    verb = leg.verb
    tail = b"%s%d\r\n" % (blank, shape.size - max(shape.header_size, 0))
    return b"".join(
        [
            b"%s%s%s%s%s%s\r\n" % (verb, subject, infix, reply, tail, payload)
            for subject, reply, _, payload in rows
        ]
    )
