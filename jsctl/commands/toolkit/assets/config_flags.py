"""Configuration fields as flags: declared once on the API's dataclasses, read from there."""

from collections.abc import Sequence
from dataclasses import Field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from jsctl.api.codec import default_of, encode, wire_of
from jsctl.api.fields import ZERO_TIME, About
from jsctl.commands.toolkit.grammar.spec import Kind, Option
from jsctl.commands.toolkit.grammar.values import parse_age, parse_size, parse_unsigned, parse_whole
from jsctl.errors import UsageError

if TYPE_CHECKING:
    from jsctl.commands.toolkit.invocation.call import Call

C = TypeVar("C")
_KINDS = {
    "count": Kind.INTEGER,
    "unsigned": Kind.UNSIGNED,
    "bytes": Kind.SIZE,
    "duration": Kind.AGE,
    "percent": Kind.INTEGER,
    "subjects": Kind.LIST,
    "map": Kind.MAP,
    "flag": Kind.FLAG,
    "switch": Kind.SWITCH,
    "inverse": Kind.SWITCH,
}
_PLACEHOLDERS = {
    "bps": "0",
    "deliver-group": "GROUP",
    "dupe-window": '""',
    "filter": "SUBJECTS",
    "inactive-threshold": "THRESHOLD",
    "max-age": '""',
    "max-bytes": "BYTES",
    "max-consumers": "-1",
    "max-deliver": "TRIES",
    "max-msg-size": "BYTES",
    "max-msgs": "0",
    "max-msgs-per-subject": "0",
    "max-pending": "-1",
    "max-pull-batch": "BATCH_SIZE",
    "max-pull-bytes": "BYTES",
    "max-pull-expire": "EXPIRES",
    "max-waiting": "PULLS",
    "metadata": "META",
    "replay": "POLICY",
    "sample": "-1",
    "subject-del-markers-ttl": "DURATION",
    "target": "SUBJECT",
    "wait": "-1s",
}
"""What stands for the value in the help, where it is not the flag's own name: what is meant without
the flag, or what the value is."""

_NEVER_NONE = {"dupe-window", "inactive-threshold", "max-pull-expire", "subject-del-markers-ttl"}
"""Lengths of time that have no -1 for none, as others do."""

_NEVER_EMPTY = {"inactive-threshold", "max-pull-expire", "subject-del-markers-ttl", "wait"}
"""Those that an empty text is none of, as of most flags; others take it for none."""

_ALIASES = {"max-pending": ("max-outstanding",)}
"""Other words for flags, which no help tells."""


def about_fields(cls: type) -> list[tuple["Field[Any]", About]]:
    """Fields that people can set, in wire order."""
    found = ((declared, wire_of(declared).about) for declared in fields(cls))
    return [(declared, about) for declared, about in found if about is not None and about.flag]


def options_for(cls: type, *, editing: bool = False) -> tuple[Option, ...]:
    """The flags of a configuration; those of fixed fields only when creating."""
    return tuple(
        Option(
            about.flag,
            about.help,
            Kind.DURATION if about.flag in _NEVER_EMPTY else _KINDS.get(about.unit, Kind.TEXT),
            aliases=_ALIASES.get(about.flag, ()),
            metavar=_PLACEHOLDERS.get(about.flag, ""),
            choices=tuple(word for word, _ in about.choices),
        )
        for _, about in about_fields(cls)
        if about.editable or not editing
    )


def apply_flags(call: "Call", config: C, *, skip: Sequence[str] = ()) -> C:
    """The configuration with every flag given laid over it; raises UsageError."""
    changes = {
        declared.name: _value(call, declared, about)
        for declared, about in about_fields(type(config))
        if call.given(about.flag) and about.flag not in skip
    }
    return replace(config, **changes)  # type: ignore[type-var] # a dataclass by contract


def _value(call: "Call", declared: "Field[Any]", about: About) -> object:
    name = about.flag
    if about.unit in ("flag", "switch"):
        return call.flag(name)
    if about.unit == "inverse":
        return not call.flag(name)
    if about.unit == "subjects":
        return call.words(name)
    if about.unit == "map":
        return call.mapping(name)
    return value_of(call.text(name), declared, about)


def value_of(text: str, declared: "Field[Any]", about: About) -> object:
    """The wire value of what a person wrote; raises UsageError."""
    if about.unit == "choice":
        zero = default_of(declared)
        assert isinstance(zero, Enum)
        return type(zero)(dict(about.choices)[text.lower()])
    if about.unit == "percent":
        return f"{int(text)}%" if int(text) > 0 else ""
    if about.unit == "duration":
        return _age(text, about.flag)
    if about.unit == "text":
        return text
    number = _NUMBERS.get(about.unit, parse_whole)(text)
    if about.maximum is not None and number > about.maximum:
        text, most = format(number, ","), format(about.maximum, ",")
        raise UsageError(f"{about.flag} {text} is too big, the maximum is {most}")
    return number


_NUMBERS = {"bytes": parse_size, "unsigned": parse_unsigned}


def _age(text: str, flag: str) -> int:
    if text == "-1" and flag in _NEVER_NONE:
        raise UsageError(f"--{flag}: expected a duration, got '{text}'")
    try:
        return parse_age(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def differences(old: object, new: object) -> list[str]:
    """`-old +new` lines of the fields that differ; the order of texts in a list means nothing."""
    before, after = encode(old), encode(new)
    lines: list[str] = []
    for key in [*before, *(key for key in after if key not in before)]:
        was, now = before.get(key), after.get(key)
        if _comparable(was) == _comparable(now):
            continue
        if key in before:
            lines.append(f"- {key}: {_shown(was)}")
        if key in after:
            lines.append(f"+ {key}: {_shown(now)}")
    return lines


def _comparable(value: object) -> object:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return sorted(value)
    return None if value == ZERO_TIME else value  # as clients write that there is none


def _shown(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
