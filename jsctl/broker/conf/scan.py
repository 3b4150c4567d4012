"""Reads single words of the configuration language: keys, strings, numbers, comments.

A cursor over one text. It knows nothing of maps, arrays, variables or files; the parser does.
All failures are `ConfigError`s that begin with `Parse error`, as operators' tools look for it.
"""

import re
from datetime import UTC, datetime

from jsctl.broker.conf.tree import Place, Scalar
from jsctl.broker.errors import ConfigError

END = ""
BLANKS = " \t"
BREAKS = "\n\r"
SPACES = BLANKS + BREAKS + "\f\v\x85\xa0"
VALUE_ENDS = ";,]}" + BLANKS + BREAKS
NUMBER_ENDS = ";,}" + BLANKS + BREAKS
SEPARATORS = "=:"

INTEGER_MIN = -(1 << 63)
INTEGER_MAX = (1 << 63) - 1
POWERS = {letter: power for power, letter in enumerate("kmgtpe", 1)}
BOOLEANS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", '"': '"', "\\": "\\"}

DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
FLOAT = re.compile(r"-?\d+\.\d+")
ADDRESS = re.compile(r"\d+\.\d+\.[\d.:-]*")
NUMBER = re.compile(r"(-?\d+)([kmgtpeKMGTPE][bBiI]*)?")
HEX_DIGITS = re.compile(r"[0-9a-fA-F]{2}")
LINE_END = re.compile(r"[\n\r]")
ASCII_END = 0x80
BYTE_MARK = 0xDC00
"""Added to a byte that was written in digits, until it is known which character it is a part of."""


class Scanner:
    """A cursor. `position` counts characters from the start of the text."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.position = 0
        self._line = 1
        self._line_start = 0
        self._counted = 0

    def place(self, position: int | None = None) -> Place:
        """Where `position` is, the cursor by default; meant to be asked in rising order."""
        position = self.position if position is None else position
        if position < self._counted:
            self._line, self._line_start, self._counted = 1, 0, 0
        breaks = self.text.count("\n", self._counted, position)
        if breaks:
            self._line += breaks
            self._line_start = self.text.rindex("\n", self._counted, position) + 1
        self._counted = position
        return Place(self.file, self._line, position - self._line_start + 1)

    def error(self, reason: str, remedy: str = "", position: int | None = None) -> ConfigError:
        """A parse error at `position`, the cursor by default."""
        return ConfigError(f"Parse error: {reason}", place=str(self.place(position)), remedy=remedy)

    def peek(self) -> str:
        """The character at the cursor; empty at the end."""
        return self.text[self.position : self.position + 1]

    def shown(self) -> str:
        """The character at the cursor as an error shows it."""
        return repr(self.peek()) if self.peek() else "the end of the file"

    def skip(self, characters: str) -> None:
        """Move past all of `characters` and past comments between them.

        Line breaks are only passed if they are among `characters`.
        """
        text, size = self.text, len(self.text)
        while self.position < size:
            char = text[self.position]
            if char in characters:
                self.position += 1
            elif char == "#" or text.startswith("//", self.position):
                end = self._line_end()
                self.position = end
            else:
                return

    def skip_blank(self, characters: str) -> None:
        """Move past `characters`; comments count as values here."""
        while self.position < len(self.text) and self.text[self.position] in characters:
            self.position += 1

    def key(self) -> str:
        """A bare or quoted key. A bare one ends at white space, `=` or `:`."""
        quote = self.peek()
        if quote and quote in "'\"":
            return self.literal(quote, "a quoted key")
        if quote and quote in SEPARATORS:
            raise self.error(f"there is no key before {quote!r}", "write a name before it")
        start = self.position
        text, size = self.text, len(self.text)
        while self.position < size:
            char = text[self.position]
            if char.isspace() or char in SEPARATORS:
                break
            self.position += 1
        return self._joined([text[start : self.position]], start)

    def quoted(self) -> str:
        """A string in single quotes, or in double quotes with escapes."""
        if self.peek() == "'":
            return self.literal("'", "a quoted string")
        start = self.position
        self.position += 1
        parts: list[str] = []
        while (char := self.peek()) != '"':
            if char == END:
                raise self.error("a string is not closed by '\"'", "close it", start)
            parts.append(self._escape() if char == "\\" else char)
            self.position += char != "\\"
        self.position += 1
        return self._joined(parts, start)

    def block(self) -> str:
        """A block string: from `(` to a line that has nothing but `)`."""
        start = self.position
        at = self.text.find("\n)", start)
        while at >= 0 and self.text[at + 2 : at + 3] not in ("\n", END):
            at = self.text.find("\n)", at + 1)
        if at < 0:
            raise self.error(
                "a block string is not closed", "end it by a line that is just ')'", start
            )
        self.position = at + 2
        return self._joined([self.text[start + 1 : at + 1]], start)

    def bare(self) -> tuple[str, bool]:
        """A string without quotes, and whether it had escapes (then it is no keyword)."""
        start = self.position
        parts: list[str] = []
        escaped = False
        while (char := self.peek()) and char not in VALUE_ENDS:
            if char == "'":
                self.position += 1
                break
            if char == "\\":
                escaped = True
                parts.append(self._escape())
                continue
            parts.append(char)
            self.position += 1
        if self.position == start:
            raise self.error(f"expected a value but got {self.shown()}", "write a value")
        return self._joined(parts, start), escaped

    def number(self) -> Scalar:
        """What begins with a digit or `-`: integer, float, date, or a string such as `10s`."""
        start = self.position
        if self.peek() == "-" and not self.text[start + 1 : start + 2].isdecimal():
            raise self.error("a '-' must be followed by a digit", "quote it if it is a string")
        if found := DATE.match(self.text, start):
            self.position = found.end()
            return self._date(found.group())
        if found := ADDRESS.match(self.text, start):
            self.position = found.end()
            return found.group()
        if found := FLOAT.match(self.text, start):
            self.position = found.end()
            return self._float(found.group(), start)
        return self._integer_or_string(start)

    def _integer_or_string(self, start: int) -> Scalar:
        found = NUMBER.match(self.text, start)
        assert found is not None, "the caller saw a digit"
        digits, suffix = found.group(1), (found.group(2) or "").lower()
        after = self.text[found.end() : found.end() + 1]
        if (suffix and after == ".") or (not suffix and after in ("-", ".")):
            raise self.error(
                "this is neither a number nor a date", "quote it if it is a string", start
            )
        negative_plain = digits.startswith("-") and not suffix
        if after and after not in NUMBER_ENDS and not negative_plain:
            return self.bare()[0]
        self.position = found.end()
        return self._integer(digits, suffix, start)

    def _integer(self, digits: str, suffix: str, start: int) -> int:
        if suffix and suffix[1:] not in ("", "b", "i", "ib"):
            raise self.error(
                f"{digits}{suffix} has no known unit", "use k, m, g, t, p, e or kb, kib ...", start
            )
        if len(digits) > len(str(INTEGER_MIN)):
            raise self.error(f"integer {digits[:24]}... is out of range", "", start)
        base = 1000 if len(suffix) <= 1 else 1024
        number = int(digits) * (base ** POWERS[suffix[0]] if suffix else 1)
        if not INTEGER_MIN <= number <= INTEGER_MAX:
            raise self.error(f"integer {digits}{suffix} is out of range", "", start)
        return number

    def _float(self, text: str, start: int) -> float:
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise self.error("this number is out of range", "", start)
        return number

    def _date(self, text: str) -> datetime:
        try:
            return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except ValueError:
            raise self.error(
                f"{text} is no date", "write 2006-01-02T15:04:05Z or quote it"
            ) from None

    def _escape(self) -> str:
        """The meaning of a backslash and what follows; moves past it."""
        char = self.text[self.position + 1 : self.position + 2]
        if char == "x":
            found = HEX_DIGITS.match(self.text, self.position + 2)
            if found is None:
                raise self.error("expected two hexadecimal digits after '\\x'")
            self.position += 4
            byte = int(found.group(), 16)
            return chr(byte if byte < ASCII_END else BYTE_MARK + byte)
        if char not in ESCAPES:
            raise self.error(
                f"unknown escape '\\{char}'", 'use \\xXX, \\t, \\n, \\r, \\", \\\\ or single quotes'
            )
        self.position += 2
        return ESCAPES[char]

    def _joined(self, parts: list[str], start: int) -> str:
        """One string; what `\\x` stands for are bytes, several of which may make one character.

        Bytes of the file that are no text are refused: put as one and the same character, a
        password of such would be the same as any other.
        """
        try:
            return "".join(parts).encode("utf-8", "surrogateescape").decode()
        except UnicodeError:
            raise self.error("these bytes are no text in UTF-8", "correct them", start) from None

    def literal(self, quote: str, what: str) -> str:
        """What stands between the quote at the cursor and the next one, as it is."""
        start = self.position
        end = self.text.find(quote, start + 1)
        if end < 0:
            raise self.error(f"{what} is not closed", f"close it by {quote}", start)
        self.position = end + 1
        return self._joined([self.text[start + 1 : end]], start)

    def _line_end(self) -> int:
        found = LINE_END.search(self.text, self.position)
        return found.start() if found else len(self.text)
