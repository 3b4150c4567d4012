"""Expressions as tokens."""

import re

from jsctl.errors import UsageError

_NUMBER = (
    r"(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+"
    r"|(?:[0-9][0-9_]*(?:\.(?!\.)[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?)"
    r"(?![A-Za-z0-9_$])"
)
_TOKEN = re.compile(
    r"\s*(?:(?P<skipped>//[^\n]*|/\*.*?\*/)"
    rf"|(?P<number>{_NUMBER})"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`)"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<item>#(?:[A-Za-z_$][A-Za-z0-9_$]*)?)"
    r"|(?P<mark>\?\.|\?\?|\*\*|\.\.|::|&&|\|\||==|!=|<=|>=|[-+*/%^<>=!?:;.,()\[\]{}|]))",
    re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_ESCAPES = {
    **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"},
    "\\": "\\",
}
_WHOLE_END = 2**63
_BASES = {"0x": 16, "0o": 8, "0b": 2}


class Token(str):
    """Some text of the expression and what it is: number, text, name, item, mark or end."""

    kind: str
    at: int


def tokens_of(source: str) -> list[Token]:
    """All of them, and the end. Raises UsageError."""
    found: list[Token] = []
    at = 0
    while source[at:].strip():
        match = _TOKEN.match(source, at)
        if match is None or match.lastgroup is None:
            rest = source[at:].lstrip()
            where = len(source) - len(rest)
            raise UsageError(f"invalid expression: unexpected {rest[:1]!r} at {where}")
        kind = match.lastgroup
        if kind != "skipped":
            found.append(_made(match[kind], kind, match.start(kind)))
        at = match.end()
    return [*found, _made("", "end", len(source))]


def _made(text: str, kind: str, at: int) -> Token:
    token = Token(text)
    token.kind, token.at = kind, at
    return token


def number_of(token: Token) -> int | float:
    """Its value. Raises UsageError where it has more than 64 bits."""
    plain = token.replace("_", "").lower()
    try:
        base = _BASES.get(plain[:2])
        if base is None and not plain.isdigit():
            return float(plain)
        value = int(plain, base or 10)
    except ValueError:
        value = _WHOLE_END
    if value >= _WHOLE_END:
        raise UsageError(f"invalid expression: {token} at {token.at} is no number")
    return value


def text_of(token: Token) -> str:
    """What stands between its quotes. Raises UsageError."""
    if token.startswith("`"):
        return token[1:-1]

    def character(found: re.Match[str]) -> str:
        octal, plain = found[4], found[5]
        if plain == token[0]:
            return str(plain)
        code = int(octal, 8) if octal else int(found[1] or found[2] or found[3] or "0", 16)
        made = _ESCAPES.get(plain, "") if plain else _character(code)
        if not made:
            where = token.at + 1 + found.start()
            raise UsageError(f"invalid expression: unknown escape {found[0]!r} at {where}")
        return made

    return _ESCAPE.sub(character, token[1:-1])


def _character(code: int) -> str:
    return "" if code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)
