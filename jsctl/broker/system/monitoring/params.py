"""Query parameters of the monitoring port, with the refusals of the real server."""

from collections.abc import Callable, Mapping

from jsctl.broker.system.monitoring.words import Refused
from jsctl.dataclass import dataclass

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_STATES = {"open": 0, "closed": 1, "any": 2, "all": 2}
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1

Value = str | int | bool
Decode = Callable[[str, str], Mapping[str, Value]]
"""(parameter, text) -> fields of the options."""


@dataclass(frozen=True, slots=True)
class Param:
    """One query parameter."""

    name: str
    decode: Decode


def text(name: str, field: str = "") -> Param:
    """Any text."""
    return Param(name, lambda _, value: {field or name: value})


def flag(name: str, field: str = "") -> Param:
    """`1`, `true`, `f` and the like."""
    return Param(name, lambda param, value: {field or name: _boolean(param, value)})


def integer(name: str) -> Param:
    """A signed number."""
    return Param(name, lambda param, value: {name: _integer(param, value)})


def unsigned(name: str) -> Param:
    """A number from 0 on."""
    return Param(name, lambda param, value: {name: _unsigned(param, value)})


def state(name: str) -> Param:
    """State of connections: open, closed, any."""
    return Param(name, _state)


def subs(name: str) -> Param:
    """A flag, or `detail`."""
    return Param(name, _subs)


def decode(params: tuple[Param, ...], given: Mapping[str, str]) -> dict[str, Value]:
    """Fields of the options from a query. Unknown parameters are ignored; Refused if bad."""
    fields: dict[str, Value] = {}
    for param in params:
        value = given.get(param.name, "")
        if value:
            fields.update(param.decode(param.name, value))
    return fields


def _boolean(param: str, value: str) -> bool:
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise Refused(
        f"Error decoding boolean for '{param}': strconv.ParseBool: parsing"
        f' "{value}": invalid syntax'
    )


def _integer(param: str, value: str) -> int:
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not (digits.isascii() and digits.isdigit()):
        raise _bad_number("int", param, "Atoi", value, "invalid syntax")
    found = int(value) if len(digits) < 30 else INT_MAX + 1
    if not -INT_MAX - 1 <= found <= INT_MAX:
        raise _bad_number("int", param, "Atoi", value, "value out of range")
    return found


def _unsigned(param: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise _bad_number("uint64", param, "ParseUint", value, "invalid syntax")
    found = int(value) if len(value) < 30 else UINT_MAX + 1
    if found > UINT_MAX:
        raise _bad_number("uint64", param, "ParseUint", value, "value out of range")
    return found


def _bad_number(kind: str, param: str, function: str, value: str, why: str) -> Refused:
    return Refused(
        f"Error decoding {kind} for '{param}': strconv.{function}: parsing \"{value}\": {why}"
    )


def _state(_: str, value: str) -> dict[str, Value]:
    found = _STATES.get(value.lower())
    if found is None:
        raise Refused(f"Error decoding state for {value}")
    return {"state": found}


def _subs(param: str, value: str) -> dict[str, Value]:
    if value.lower() == "detail":
        return {"subscriptions_detail": True}
    return {"subscriptions": _boolean(param, value)}
