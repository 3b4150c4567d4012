"""Texts in quotes, and back: as Go writes and reads them."""

_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
}
_PLAIN = {value[1]: key for key, value in _ESCAPES.items()}
_WIDTHS = {"x": 2, "u": 4, "U": 8}
_OCTAL = 3
_PLANE = 0xFFFF


def quoted(text: str, quote: str = '"') -> str:
    """In quotes, with what cannot be read in escapes."""
    return quote + "".join(_escaped(sign, quote) for sign in text) + quote


def _escaped(sign: str, quote: str) -> str:
    if sign == quote:
        return f"\\{quote}"
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    code = ord(sign)
    if "\udc80" <= sign <= "\udcff":
        return f"\\x{code - 0xDC00:02x}"
    if sign.isprintable():
        return sign
    if code < ord(" ") or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _PLANE else f"\\U{code:08x}"


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
