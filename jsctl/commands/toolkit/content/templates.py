"""The words in braces that bodies, subjects and headers of messages may hold."""

import random
import string
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from jsctl.errors import JsctlError

if TYPE_CHECKING:
    from jsctl.commands.toolkit.templating.running import Template
    from jsctl.commands.toolkit.templating.values import Callee, Record

ID_LENGTH = 22
_LETTERS = string.ascii_letters + string.digits
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_MAX = 64 * 1024 * 1024
"""Of one text: what a server takes as a message at most."""


def unique_id() -> str:
    """22 characters, as NATS clients make them."""
    return "".join(random.SystemRandom().choices(_ALPHABET, k=ID_LENGTH))


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
    """The text with `{{Count}}`, `{{.ID}}`, `{{Random 3 5 | printf "%q"}}`, ... filled in.

    What is no template stays as it is, all of it, as with the `nats` tool; `log` hears why, and
    `what` it is.
    """
    if "{{" not in text:
        return text
    from jsctl.commands.toolkit.templating.parsing import TemplateError

    try:
        return _filled(text, count, request)
    except TemplateError as error:
        log(f"Could not parse {what} template: {error}")
        return text


def filled_header(name: str, value: str, count: int) -> str:
    """The same of a header. Raises JsctlError, as nothing is sent with a wrong one."""
    if "{{" not in value:
        return value
    from jsctl.commands.toolkit.templating.parsing import TemplateError

    try:
        return _filled(value, count, "")
    except TemplateError as error:
        raise JsctlError(f"failed to parse Header template for {name}: {error}") from None


def filled_command(text: str, subject: str, stream: str) -> str:
    """A command that a message is given to. Raises TemplateError."""
    from jsctl.commands.toolkit.templating.running import Template
    from jsctl.commands.toolkit.templating.values import Callee

    functions = {"Subject": Callee(lambda: subject), "Stream": Callee(lambda: stream)}
    return Template("translate", text, functions).run()


def _filled(text: str, count: int, request: str) -> str:
    data, functions = _words(count, request)
    return _template(text, named_request=bool(request)).run(data, functions)


@lru_cache(maxsize=64)
def _template(text: str, *, named_request: bool) -> "Template":
    from jsctl.commands.toolkit.templating.running import Template

    _, functions = _words(0, "request" if named_request else "")
    return Template("body", text, functions)


def _words(count: int, request: str) -> "tuple[Record, Mapping[str, Callee]]":
    """What a template may say of a message: by function, and as fields."""
    from jsctl.commands.toolkit.templating.values import Callee, Long, Record

    now_ns = time.time_ns()
    fields = {
        "Cnt": count,
        "Count": count,
        "Unix": Long(now_ns // 10**9),
        "UnixNano": Long(now_ns),
        "TimeStamp": _stamp(now_ns),
        "Time": _clock(now_ns),
        "Request": request,
    }
    functions = {
        name: Callee(lambda value=value: value)
        for name, value in fields.items()
        if name != "Request" or request
    }
    make = Callee(unique_id)
    functions |= {"ID": make, "Random": Callee(_random, ("uint", "uint"))}
    return Record("*util.pubData", fields, {"ID": make}), functions


def _random(low: int, high: int) -> str:
    shortest, longest = sorted((low, high))
    if longest > _RANDOM_MAX:
        raise ValueError(f"no more than {_RANDOM_MAX} characters")
    return "".join(random.choices(_LETTERS, k=random.randint(shortest, longest)))


def _stamp(now_ns: int) -> str:
    zone = time.strftime("%z")
    tail = "Z" if zone in ("+0000", "") else f"{zone[:3]}:{zone[3:]}"
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now_ns // 10**9)) + tail


def _clock(now_ns: int) -> str:
    return time.strftime("%I:%M%p", time.localtime(now_ns // 10**9)).lstrip("0")
