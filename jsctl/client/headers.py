"""Headers of a message as they came: a dictionary for reading, the bytes for passing them on.

A dictionary has one value of each name, and a name can have several.
"""

from collections.abc import Iterable, Iterator, Mapping

VERSION = b"NATS/1.0"
STATUS_DIGITS = 3
_BLANKS = b" \t"
_ONE_LINE = {ord("\r"): " ", ord("\n"): " "}
"""A value ends where its line ends."""


class Headers(dict[str, str]):
    """The last value of each name; `block` has all of them, in their order."""

    def __init__(self, values: Mapping[str, str], block: bytes) -> None:
        super().__init__(values)
        self.block = block

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Headers | None":
        """Headers of these names and values; None for none."""
        listed = list(pairs)
        if not listed:
            return None
        lines = "".join(f"{name}: {value.translate(_ONE_LINE)}\r\n" for name, value in listed)
        block = b"%b\r\n%b\r\n" % (VERSION, lines.encode("utf-8", "surrogateescape"))
        return cls(dict(listed), block)

    @classmethod
    def read(cls, block: bytes) -> "Headers | None":
        """Those that came with a message, whatever they are; None where nothing can be read."""
        values = {readable(name): readable(value) for name, value in pairs_of(block)}
        line = block.partition(b"\r\n")[0]
        if said := line.removeprefix(VERSION).strip().decode("utf-8", "replace"):
            values["Status"] = said[:STATUS_DIGITS]
            if about := said[STATUS_DIGITS:].strip():
                values["Description"] = about
        return cls(values, block) if values and line.startswith(VERSION) else None


def status_of(headers: Mapping[str, str] | None) -> str:
    """`503`, `408`, ... of what a server says itself; empty for messages, which may well have a
    header of the name that the library gives to it."""
    line = headers.block.partition(b"\r\n")[0] if isinstance(headers, Headers) else b""
    word = line.removeprefix(VERSION).strip()[:STATUS_DIGITS]
    return word.decode() if len(word) == STATUS_DIGITS and word.isdigit() else ""


def pairs_of(block: bytes) -> Iterator[tuple[str, str]]:
    """Names and values of a block, without its first line.

    What is no UTF-8 is in half surrogate pairs, of which `Headers.of` makes the same bytes.
    """
    for line in block.split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon and name:
            yield _text(name), _text(value.lstrip(_BLANKS))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def readable(text: str) -> str:
    """A name or value for those who read it: what is no UTF-8 is replaced."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def block_of(headers: Mapping[str, str] | None) -> bytes:
    """The bytes of headers that came with a message, or of any; empty for none."""
    if isinstance(headers, Headers):
        return headers.block
    made = Headers.of((headers or {}).items())
    return made.block if made is not None else b""
