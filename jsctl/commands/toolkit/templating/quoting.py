"""Texts in quotes: as Go reads them."""

from jsctl.api.strict import ESCAPES

_PLAIN = {value[1]: key for key, value in ESCAPES.items()}
_WIDTHS = {"x": 2, "u": 4, "U": 8}
_OCTAL = 3


def unquoted(text: str) -> str:
    """Of a word in quotes. Raises ValueError."""
    quote, inner = text[0], text[1:-1]
    if quote == "`":
        return inner.replace("\r", "")
    data, at = bytearray(), 0
    while at < len(inner):
        if inner[at] == "\\":
            piece, at = _unescaped(inner, at + 1, quote)
            data += piece
        else:
            data += inner[at].encode("utf-8", "surrogateescape")
            at += 1
    return data.decode("utf-8", "surrogateescape")


def _unescaped(text: str, at: int, quote: str) -> tuple[bytes, int]:
    sign = text[at : at + 1]
    if sign and sign in _PLAIN:
        return _PLAIN[sign].encode(), at + 1
    if sign == quote:
        return sign.encode(), at + 1
    if sign in _WIDTHS:
        end = at + 1 + _WIDTHS[sign]
        digits, base = text[at + 1 : end], 16
        whole = len(digits) == _WIDTHS[sign]
    else:
        end = at + _OCTAL
        digits, base = text[at:end], 8
        whole = len(digits) == _OCTAL
    try:
        code = int(digits, base) if whole and digits.isalnum() else -1
        if sign in ("u", "U"):
            return chr(code).encode(), end
        return bytes((code,)), end
    except (ValueError, OverflowError):
        raise ValueError("invalid syntax") from None
