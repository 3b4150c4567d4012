"""Regular expressions as `nats` takes them, in the spelling of Go.

Python's own differ: classes like `[[:alpha:]]` and `\\pL`, `(?<name>...)`, `\\z`, quotes
`\\Q...\\E`, `{,3}` that is no repetition, and flags in the middle of an expression, which count to
the end of their group. All of that is written as Python has it; what Python has beyond it is taken.
"""

import re
from collections.abc import Mapping

CLASSES: Mapping[str, str] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
PROPERTIES: Mapping[str, tuple[str, str]] = {
    "L": (r"[^\W\d_]", r"[\W\d_]"),
    "N": (r"\d", r"\D"),
    "Nd": (r"\d", r"\D"),
    "Z": (r"\s", r"\S"),
}
"""Those that Python can tell, and what is none of them."""
_WORDS = (
    ("missing ), unterminated", "missing closing )", 0, 0),
    ("unbalanced parenthesis", "unexpected )", 0, 0),
    ("nothing to repeat", "missing argument to repetition operator", 0, 1),
    ("multiple repeat", "invalid nested repetition operator", 1, 1),
    ("bad escape (end", "trailing backslash at end of expression", -1, 1),
    ("bad escape", "invalid escape sequence", 0, 2),
)
"""What Python says and Go, and how much before and behind the place of it: 0 for all."""
_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_FLAGS = re.compile(r"\(\?([ims]+(?:-[ims]+)?|-[ims]+)\)")
_NO_REPETITION = re.compile(r"\{(?!\d+(?:,\d*)?\})")
_NAMED = re.compile(r"\(\?<(?![=!])")
_SET_WORDS = frozenset("[&~|")
"""Two of them in a set mean something to later versions of Python, which warns."""
_ALL_TEXT, _ALL_BYTES = r"\x80-\U0010ffff", r"\x80-\xff"


def compiled(text: str, flags: int = 0) -> re.Pattern[str]:
    """The expression. Raises re.error, with what is wrong in the words of Go."""
    spelled = _Spelling(text, _ALL_TEXT).whole()
    try:
        return re.compile(spelled, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise re.error(_said(error, text, spelled)) from None


def compiled_bytes(text: str) -> re.Pattern[bytes]:
    """One for bytes. Raises re.error."""
    spelled = _Spelling(text, _ALL_BYTES).whole()
    try:
        return re.compile(spelled.encode())
    except (re.error, OverflowError, RecursionError) as error:
        raise re.error(_said(error, text, spelled)) from None


def _said(error: Exception, text: str, spelled: str) -> str:
    """The words of Go, where it has others than Python."""
    at = getattr(error, "pos", None)
    if not isinstance(error, re.error) or at is None:
        return str(error)
    for theirs, ours, before, behind in _WORDS:
        if error.msg.startswith(theirs):
            piece = spelled[at - before : at + behind] if behind else text
            return f"{ours}: `{piece}`"
    return str(error)


class _Spelling:
    """Goes through an expression once."""

    def __init__(self, text: str, beyond: str) -> None:
        """`beyond` is what is there behind ASCII."""
        self._text = text
        self._beyond = beyond
        self._at = 0
        self._flags: list[list[str]] = [[]]
        """For each group that is open, the flags in its middle: each has opened a group of ours."""

    def whole(self) -> str:
        """The expression as Python has it."""
        found = list[str]()
        while self._at < len(self._text):
            found.append(self._piece())
        return "".join(found) + ")" * len(self._flags[-1])

    def _piece(self) -> str:
        start = self._text[self._at]
        if start == "\\":
            return self._escaped()
        if start == "[":
            return self._set()
        if start == "(":
            return self._opened()
        if _NO_REPETITION.match(self._text, self._at):
            start = r"\{"
        own = self._flags[-1]
        if start == ")" and len(self._flags) > 1:
            start = ")" * (len(self._flags.pop()) + 1)
        elif start == "|":
            start = ")" * len(own) + "|" + "".join(own)
        self._at += 1
        return start

    def _opened(self) -> str:
        if flags := _FLAGS.match(self._text, self._at):
            self._flags[-1].append(f"(?{flags[1]}:")
            self._at = flags.end()
            return self._flags[-1][-1]
        self._flags.append([])
        if named := _NAMED.match(self._text, self._at):
            self._at = named.end()
            return "(?P<"
        self._at += 1
        return "("

    def _escaped(self) -> str:
        if quoted := _QUOTED.match(self._text, self._at):
            self._at = quoted.end()
            return re.escape(quoted[1])
        if found := _PROPERTY.match(self._text, self._at):
            known = PROPERTIES.get((found[3] or found[4]).capitalize())
            if known is None:
                raise re.error(f"invalid character class range: `{found[0]}`")
            self._at = found.end()
            return known[(found[1] == "P") != bool(found[2])]
        start, self._at = self._at, self._at + 2
        piece = self._text[start : self._at]
        return r"\Z" if piece == r"\z" else piece

    def _set(self) -> str:
        """A set of characters, from its bracket to the other one."""
        start = self._at
        self._at += 2 if self._text.startswith("[^", start) else 1
        found = [self._text[start : self._at]]
        while self._at < len(self._text) and (len(found) == 1 or self._text[self._at] != "]"):
            found.append(self._member())
        if self._at >= len(self._text):
            raise re.error(f"missing closing ]: `{self._text[start:]}`")
        self._at += 1
        return "".join(found) + "]"

    def _member(self) -> str:
        start = self._at
        if named := _CLASS.match(self._text, start):
            known = CLASSES.get(named[2])
            if known is None:
                raise re.error(f"invalid character class range: `{named[0]}`")
            self._at = named.end()
            return _others(known) + self._beyond if named[1] else known
        self._at += 2 if self._text[start] == "\\" else 1
        piece = self._text[start : self._at]
        return f"\\{piece}" if piece in _SET_WORDS else piece


def _others(known: str) -> str:
    """The rest of ASCII."""
    own = re.compile(f"[{known}]")
    return "".join(f"\\x{at:02x}" for at in range(128) if not own.match(chr(at)))
