"""From the text of a template to its words."""

import re
from enum import Enum
from typing import NamedTuple

from jsctl.api.strict import quoted

LEFT, RIGHT = "{{", "}}"


class Token(Enum):
    """What a word is."""

    TEXT = "text"
    LEFT = "left delimiter"
    RIGHT = "right delimiter"
    SPACE = "space"
    ASSIGN = "="
    DECLARE = ":="
    PIPE = "|"
    STRING = "string"
    RAW_STRING = "raw string"
    VARIABLE = "variable"
    FIELD = "field"
    DOT = "."
    CHARACTER = "character constant"
    NUMBER = "number"
    COMPLEX = "complex"
    IDENTIFIER = "identifier"
    KEYWORD = "keyword"
    BOOL = "bool"
    NIL = "nil"
    OPEN = "("
    CLOSE = ")"
    OTHER = "other character"
    ERROR = "error"
    END = "EOF"


class Word(NamedTuple):
    """One of them, and where it begins."""

    kind: Token
    text: str
    at: int
    line: int

    def __str__(self) -> str:
        if self.kind is Token.END:
            return "EOF"
        if self.kind is Token.ERROR:
            return self.text
        if self.kind in (Token.KEYWORD, Token.DOT, Token.NIL):
            return f"<{self.text}>"
        if len(self.text.encode("utf-8", "surrogateescape")) > _SHOWN:
            return f"{quoted(self.text[:_SHOWN])}..."
        return quoted(self.text)


KEYWORDS = frozenset(
    ("block", "break", "continue", "define", "else", "end", "if", "range", "template", "with")
)
_SHOWN = 10
_SPACES = " \t\r\n"
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?"
    r"|0[oO][0-7_]*(?:\.[0-7_]*)?|0[bB][01_]*(?:\.[01_]*)?"
    r"|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)
_WORD = re.compile(r"\w*")
_QUOTED = {
    '"': (re.compile(r'"(?:[^"\\\n]|\\[^\n])*"'), Token.STRING, "quoted string"),
    "`": (re.compile(r"`[^`]*`"), Token.RAW_STRING, "raw quoted string"),
    "'": (re.compile(r"'(?:[^'\\\n]|\\[^\n])*'"), Token.CHARACTER, "character constant"),
}
_SINGLE = {"=": Token.ASSIGN, "|": Token.PIPE}


class _Wrong(Exception):
    """A text that has no words."""


def words_of(text: str, left: str = LEFT, right: str = RIGHT) -> list[Word]:
    """All of them; the last one is the end or what is wrong."""
    lexer = _Lexer(text, left, right)
    try:
        while lexer.outside():
            pass
    except _Wrong as error:
        lexer.words.append(Word(Token.ERROR, str(error), lexer.start, lexer.line(lexer.start)))
    return lexer.words


class _Lexer:
    def __init__(self, text: str, left: str, right: str) -> None:
        self.text, self.left, self.right = text, left, right
        self.words: list[Word] = []
        self.start = self.at = 0
        self._depth = 0

    def line(self, at: int) -> int:
        return 1 + self.text.count("\n", 0, at)

    def outside(self) -> bool:
        """Text up to a delimiter, and what is between that one and the next."""
        begin = self.text.find(self.left, self.at)
        text = self.text[self.at :] if begin < 0 else self.text[self.at : begin]
        inside = begin + len(self.left)
        trims = begin >= 0 and self._trims_left(inside)
        if trims:
            text = text.rstrip(_SPACES)
        if text:
            self._add(Token.TEXT, self.at, text)
        if begin < 0:
            self._add(Token.END, len(self.text), "")
            return False
        self.start = self.at = begin
        after = inside + (2 if trims else 0)
        if self.text.startswith("/*", after):
            self._comment(after)
            return True
        self._add(Token.LEFT, begin, self.left)
        self.start = self.at = after
        self._depth = 0
        while self._inside():
            pass
        return True

    def _trims_left(self, at: int) -> bool:
        return self.text[at : at + 1] == "-" and self.text[at + 1 : at + 2] in (*_SPACES,)

    def _trims_right(self, at: int) -> bool:
        """A space and a dash before the delimiter."""
        spaced = self.text[at : at + 1] in (*_SPACES,) and self.text[at + 1 : at + 2] == "-"
        return spaced and self.text.startswith(self.right, at + 2)

    def _add(self, kind: Token, at: int, text: str) -> None:
        self.words.append(Word(kind, text, at, self.line(at)))

    def _comment(self, begin: int) -> None:
        self.start = begin
        end = self.text.find("*/", begin + 2)
        if end < 0:
            raise _Wrong("unclosed comment")
        self.at = end + 2
        if not self._closes():
            raise _Wrong("comment ends before closing delimiter")

    def _closes(self) -> bool:
        """Whether the right delimiter is here; passes over it, and over what it trims."""
        trims = self._trims_right(self.at)
        if not trims and not self.text.startswith(self.right, self.at):
            return False
        self.at += len(self.right) + (2 if trims else 0)
        while trims and self.text[self.at : self.at + 1] in (*_SPACES,):
            self.at += 1
        self.start = self.at
        return True

    def _inside(self) -> bool:
        """One word between the delimiters; false behind the right one."""
        self.start = begin = self.at
        trims = self._trims_right(begin)
        if trims or self.text.startswith(self.right, begin):
            if self._depth:
                raise _Wrong("unclosed left paren")
            self._add(Token.RIGHT, begin + (2 if trims else 0), self.right)
            return not self._closes()
        found = self.text[begin : begin + 1]
        if not found:
            raise _Wrong("unclosed action")
        if found in _SPACES:
            self._spaces()
        elif found in _QUOTED:
            self._quote(found)
        elif found in "()":
            self._paren(found)
        elif found in _SINGLE or found == ":":
            self._sign(found)
        else:
            self._name_or_number(found)
        return True

    def _emit(self, kind: Token, end: int) -> None:
        self._add(kind, self.start, self.text[self.start : end])
        self.at = end

    def _spaces(self) -> None:
        end = self.at
        while self.text[end : end + 1] in (*_SPACES,):
            end += 1
        self._emit(Token.SPACE, end - 1 if self._trims_right(end - 1) else end)

    def _quote(self, sign: str) -> None:
        pattern, kind, what = _QUOTED[sign]
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _Wrong(f"unterminated {what}")
        self._emit(kind, found.end())

    def _paren(self, sign: str) -> None:
        self._depth += 1 if sign == "(" else -1
        if self._depth < 0:
            raise _Wrong("unexpected right paren")
        self._emit(Token.OPEN if sign == "(" else Token.CLOSE, self.at + 1)

    def _sign(self, sign: str) -> None:
        if sign in _SINGLE:
            return self._emit(_SINGLE[sign], self.at + 1)
        if self.text[self.at + 1 : self.at + 2] != "=":
            raise _Wrong("expected :=")
        return self._emit(Token.DECLARE, self.at + 2)

    def _name_or_number(self, sign: str) -> None:
        digit = sign in "+-" or (sign.isascii() and sign.isdigit())
        if digit or (sign == "." and self.text[self.at + 1 : self.at + 2] in ("", *"0123456789")):
            self._number()
        elif sign in ".$":
            end = _end_of_word(self.text, self.at + 1)
            self._terminated(end)
            bare = end == self.at + 1
            kind = Token.VARIABLE if sign == "$" else Token.DOT if bare else Token.FIELD
            self._emit(kind, end)
        elif sign.isalnum() or sign == "_":
            end = _end_of_word(self.text, self.at)
            self._terminated(end)
            self._emit(_kind_of(self.text[self.at : end]), end)
        elif sign.isascii() and sign.isprintable():
            self._emit(Token.OTHER, self.at + 1)
        else:
            raise _Wrong(f"unrecognized character in action: {_point(sign)}")

    def _terminated(self, end: int) -> None:
        """Raises _Wrong unless a name may end there."""
        following = self.text[end : end + 1]
        free = not following or following in f"{_SPACES}.,|:)("
        if not free and not self.text.startswith(self.right, end):
            raise _Wrong(f"bad character {_point(following)}")

    def _number(self) -> None:
        end = self._digits(self.at)
        kind = Token.NUMBER
        if self.text[end : end + 1] in ("+", "-"):
            end, kind = self._digits(end), Token.COMPLEX
            if self.text[end - 1] != "i":
                raise _Wrong(f"bad number syntax: {quoted(self.text[self.at : end])}")
        self._emit(kind, end)

    def _digits(self, begin: int) -> int:
        found = _NUMBER.match(self.text, begin)
        end = found.end() if found else begin
        following = self.text[end : end + 1]
        if following.isalnum() or following == "_":
            raise _Wrong(f"bad number syntax: {quoted(self.text[self.at : end + 1])}")
        return end


def _end_of_word(text: str, begin: int) -> int:
    found = _WORD.match(text, begin)
    return found.end() if found else begin


def _kind_of(word: str) -> Token:
    if word in KEYWORDS:
        return Token.KEYWORD
    if word in ("true", "false"):
        return Token.BOOL
    return Token.NIL if word == "nil" else Token.IDENTIFIER


def _point(sign: str) -> str:
    shown = f" '{sign}'" if sign.isprintable() else ""
    return f"U+{ord(sign):04X}{shown}"
