"""The words in braces that bodies and subjects of messages may hold."""

import random
import re
import string
import time
from collections.abc import Callable, Mapping

ID_LENGTH = 22
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_WORD = re.compile(r"\{\{\s*([A-Za-z]+)((?:\s+\d+)*)\s*\}\}")


def unique_id() -> str:
    """22 characters, as NATS clients make them."""
    return "".join(random.SystemRandom().choices(_ALPHABET, k=ID_LENGTH))


def fill(text: str, count: int, request: str = "") -> str:
    """The text with `{{Count}}`, `{{ID}}`, `{{Random 3 5}}`, ... filled in.

    Words that mean nothing stay as they are.
    """
    if "{{" not in text:
        return text

    def word(found: re.Match[str]) -> str:
        name, numbers = found[1], [int(part) for part in found[2].split()]
        if name == "Random" and len(numbers) == 2 and numbers[0] <= numbers[1]:
            length = random.randint(*numbers)
            return "".join(random.choices(string.ascii_letters + string.digits, k=length))
        if name in ("Count", "Cnt"):
            return str(count)
        if name == "Request":
            return request
        make = _MAKERS.get(name)
        return make() if make is not None and not numbers else found[0]

    return _WORD.sub(word, text)


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
