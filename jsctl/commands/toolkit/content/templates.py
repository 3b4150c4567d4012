"""The words in braces that bodies and subjects of messages may hold."""

import random
import re
import string
import time
from collections.abc import Callable, Mapping

ID_LENGTH = 22
_LETTERS = string.ascii_letters + string.digits
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BRACES = re.compile(r"\{\{(.*?)(?:\}\}|$)", re.DOTALL)


def unique_id() -> str:
    """22 characters, as NATS clients make them."""
    return "".join(random.SystemRandom().choices(_ALPHABET, k=ID_LENGTH))


class _NotAWord(Exception):
    """Braces that mean nothing here, and why."""


def _silent(_text: str) -> None:
    """Nobody wants to hear it."""


def fill(
    text: str,
    count: int,
    request: str = "",
    *,
    what: str = "",
    log: Callable[[str], None] = _silent,
) -> str:
    """The text with `{{Count}}`, `{{.ID}}`, `{{Random 3 5}}`, ... filled in.

    A text with anything else in braces stays as it is, all of it, as with the `nats` tool; `log`
    hears why, and `what` it is.
    """
    if "{{" not in text:
        return text
    try:
        return _BRACES.sub(lambda found: _word(found, count, request), text)
    except _NotAWord as error:
        log(f"Could not parse {what} template: template: body:1: {error}")
        return text


def _word(found: re.Match[str], count: int, request: str) -> str:
    if not found[0].endswith("}}"):
        raise _NotAWord("unclosed action")
    match found[1].split():
        case ["Random", low, high] if low.isdecimal() and high.isdecimal():
            shortest, longest = sorted((int(low), int(high)))
            return "".join(random.choices(_LETTERS, k=random.randint(shortest, longest)))
        case ["Count" | ".Count" | "Cnt" | ".Cnt"]:
            return str(count)
        case ["Request" | ".Request"]:
            return request
        case [name] if (make := _MAKERS.get(name.removeprefix("."))) is not None:
            return make()
    word = next(iter(found[1].split()), "")
    if not word:
        raise _NotAWord("missing value for command")
    known = word.removeprefix(".") in (*_MAKERS, "Count", "Cnt", "Request", "Random")
    raise _NotAWord(f"wrong arguments for {word}" if known else f'function "{word}" not defined')


def _stamp() -> str:
    now_ns = time.time_ns()
    zone = time.strftime("%z")
    tail = "Z" if zone in ("+0000", "") else f"{zone[:3]}:{zone[3:]}"
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now_ns // 10**9)) + tail


def _clock() -> str:
    return time.strftime("%I:%M%p").lstrip("0")


_MAKERS: Mapping[str, Callable[[], str]] = {
    "TimeStamp": _stamp,
    "Unix": lambda: str(time.time_ns() // 10**9),
    "UnixNano": lambda: str(time.time_ns()),
    "Time": _clock,
    "ID": unique_id,
}
