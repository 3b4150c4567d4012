"""Small delivered messages without headers, a buffer at once: twice as fast as one by one.

Split at its line breaks, a buffer of such messages is lines and payloads in turns. A line is
`MSG <subject> <sid> <reply> <size>`, and the reply of a consumer's delivery ends with
`<sequence>.<number>.<time>.<pending>`, newer ones with a token more. All that stands between
subject and sequence is the same in every line of a consumer whose messages come once: the mark.

It holds only while no payload has a line break, which nobody knows beforehand. So every line has
to tell the length of what is taken for its payload: then the next line begins where one has to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

HEADERS = b"\r\nHMSG "
LARGE = 1_024
"""Payloads of more bytes are taken faster one by one: splitting copies them once more."""
WORDS = 4
"""Of a line without the mark."""
WIDTHS = (4, 5)
"""Numbers of a reply behind the mark."""


@dataclass(frozen=True, slots=True)
class Plain:
    """Rows as columns; `end` is where the next line begins.

    `seqs` are digits or numbers, `times` nanoseconds since 1970 in digits, `numbers` the
    consumer's own for the first and the last row, `pending` what it had left after the last one.
    """

    end: int
    subjects: Sequence[bytes] = ()
    seqs: Sequence[bytes | int] = ()
    times: Sequence[bytes] = ()
    payloads: Sequence[bytes] = ()
    numbers: tuple[int, int] = (0, 0)
    pending: int = 0


def take_plain(data: bytes, at: int, mark: bytes) -> Plain | None:
    """The whole messages from `at` on, up to the first with headers; without rows if there are
    none, or if the first one is large. None where something else is among them, and they have
    to be taken one by one."""
    if data.startswith(HEADERS[2:], at) or _is_large(data, at):
        return Plain(at)
    stop = data.find(HEADERS, at) + 2
    parts = data[at : stop if stop > 1 else None].split(b"\r\n")
    count = (len(parts) - 1) // 2
    if not count:
        return Plain(at)
    payloads = parts[1 : 2 * count : 2]
    lines = b" ".join(parts[: 2 * count : 2])
    short = lines.replace(mark, b" ")
    words = short.split(b" ")
    if len(lines) - len(short) != count * (len(mark) - 1) or len(words) != WORDS * count:
        return None
    numbers = b".".join(words[2::WORDS]).split(b".")
    width = len(numbers) // count
    if len(numbers) != width * count or width not in WIDTHS:
        return None
    try:
        if words[::WORDS].count(b"MSG") != count or _sizes(words) != list(map(len, payloads)):
            return None
        first, last = int(numbers[0]), int(numbers[-width])
        seqs = range(first, last + 1)
        return Plain(
            (stop if stop > 1 else len(data)) - len(b"\r\n".join(parts[2 * count :])),
            words[1::WORDS],
            seqs if len(seqs) == count else numbers[::width],
            numbers[2::width],
            payloads,
            (int(numbers[1]), int(numbers[1 - width])),
            int(numbers[3 - width]),
        )
    except ValueError:
        return None


def _is_large(data: bytes, at: int) -> bool:
    """Whether the first message is."""
    end = data.find(b"\r\n", at)
    size = data[data.rfind(b" ", at, end) + 1 : max(end, at)]
    return size.isdigit() and int(size) > LARGE


def _sizes(words: list[bytes]) -> list[int]:
    """Raises ValueError."""
    return list(map(int, words[3::WORDS]))
