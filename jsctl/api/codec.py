"""API objects <-> dicts <-> JSON bytes, in the field order and escaping of the real server.

Theory of operation: the first use of a class compiles its fields into two tables. `encode`
walks the table in declared order; `decode` walks the *document*, so the cost follows what is
there. A null in a document leaves the zero value, as in Go, and a value of another kind than that
of its field is refused. `strict` decoding refuses what the real server refuses, in its words;
otherwise words of newer servers pass, and unknown keys are kept in the field declared by
`fields.unknown()`, or dropped where there is none.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import partial
from itertools import compress
from operator import attrgetter, or_
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

from jsctl.api import jsontext
from jsctl.api import strict as checks
from jsctl.api.fields import Wire
from jsctl.api.jsontext import Repeated
from jsctl.api.strict import DecodeError, Mismatch, quoted

__all__ = [
    "DecodeError",
    "decode",
    "default_of",
    "dumps",
    "encode",
    "key_of",
    "keys_of",
    "loads",
    "wire_of",
]

T = TypeVar("T")
Convert = Callable[[Any], Any]

_DEFAULT_WIRE = Wire()


class _Slot:
    """One field, ready to be read and written."""

    __slots__ = ("attr", "check", "decode", "encode", "hides", "key", "nullable", "omit", "zero")

    def __init__(self, declared: "Field[Any]", wire: Wire) -> None:
        self.attr = declared.name
        self.key = wire.key or declared.name.rstrip("_")
        self.omit = wire.omit
        kind, _ = _unwrap(declared.type)
        self.encode = _encoder(kind)
        self.decode = _decoder(kind)
        self.check = _checker(kind)
        self.nullable = not (isinstance(kind, type) and issubclass(kind, Enum))
        """Whether null is no value; words are asked about it, too."""
        self.zero = declared.default
        """What counts as empty besides falsehood: the first word of an enumeration."""
        self.hides = wire.omit and isinstance(self.zero, Enum)
        """Whether that is left out."""


class _Plan:
    """A class as tables. `embeds` are flattened structs."""

    __slots__ = (
        "checked", "embeds", "items", "kept", "keys", "order", "slots", "special", "unknown",
        "words",
    )  # fmt: skip

    def __init__(self, cls: type) -> None:
        self.slots: dict[str, _Slot] = {}
        self.order: list[_Slot | None] = []
        self.embeds: list[tuple[str, type, bool]] = []
        self.unknown = ""
        named: list[str] = []
        for declared in fields(cls):
            wire = wire_of(declared)
            if wire.unknown:
                self.unknown = declared.name
            elif wire.embed:
                inner, optional = _unwrap(declared.type)
                self.embeds.append((declared.name, cast(type, inner), optional))
                self.order.append(None)
                named.append(declared.name)
            else:
                slot = _Slot(declared, wire)
                self.slots[slot.key] = slot
                self.order.append(slot)
                named.append(declared.name)
        self.kept = [slot is None or not slot.omit for slot in self.order]
        """Of each slot, whether it is written although it is empty."""
        self.words = [slot.key for slot in self.order if slot is not None]
        self.special = {
            key: slot for key, slot in self.slots.items() if slot.hides or slot.encode is not None
        }
        """Those that are not written just as they are."""
        self.items = _values(named)
        """What is written, in the order of its slots."""
        self.keys = set(self.slots)
        self.checked = dict(self.slots)
        """All that a document may have, flattened structs too."""
        for _, flat, _ in self.embeds:
            self.keys |= _plan(flat).keys
            self.checked = {**_plan(flat).checked, **self.checked}


def _values(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


_plans: dict[type, _Plan] = {}


def _plan(cls: type) -> _Plan:
    plan = _plans.get(cls)
    if plan is None:
        assert is_dataclass(cls), cls
        plan = _plans[cls] = _Plan(cls)
    return plan


def encode(value: object) -> dict[str, object]:
    """The object as a dict in wire order, ready for `dumps`."""
    out: dict[str, object] = {}
    _encode_into(value, out)
    return out


def _encode_into(value: object, out: dict[str, object]) -> None:
    cls = type(value)
    plan = _plans.get(cls) or _plan(cls)
    items = plan.items(value)
    # Of a config's fields most are empty, and left out without a look at each.
    shown = map(or_, plan.kept, map(bool, items))
    if not plan.embeds:
        made = dict(compress(zip(plan.words, items, strict=True), shown))
        _convert(plan, made)
        out.update(made)
    else:
        _encode_flattened(plan, items, shown, out)
    if plan.unknown:
        out.update(getattr(value, plan.unknown))


def _convert(plan: _Plan, made: dict[str, object]) -> None:
    """Put what is not written just as it is into words, each in the place that it has."""
    special = plan.special
    for key in special.keys() & made.keys():
        slot, item = special[key], made[key]
        if slot.hides and item is slot.zero:
            del made[key]
        elif item is not None and slot.encode is not None:
            made[key] = slot.encode(item)


def _encode_flattened(
    plan: _Plan, items: tuple[object, ...], shown: Iterable[bool], out: dict[str, object]
) -> None:
    for slot, item in compress(zip(plan.order, items, strict=True), shown):
        if slot is None:
            if item is not None:
                _encode_into(item, out)
            continue
        if slot.hides and item is slot.zero:
            continue
        if item is not None and slot.encode is not None:
            item = slot.encode(item)
        out[slot.key] = item


def decode(cls: type[T], document: object, *, strict: bool = False) -> T:
    """The object that a decoded JSON document describes.

    Raises DecodeError when a shape does not fit; with `strict` also for unknown keys, words
    and numbers out of range.
    """
    try:
        return _decode(cls, document, strict)
    except Mismatch as mismatch:
        root = str(getattr(cls, "GO_NAME", cls.__name__))
        raise DecodeError(mismatch.text(root)) from None
    except (AttributeError, TypeError, ValueError) as error:
        if isinstance(error, DecodeError):
            raise
        raise DecodeError(f"unexpected shape of {cls.__name__}: {error}") from error


def _decode(cls: type[T], document: object, strict: bool) -> T:
    plan = _plans.get(cls) or _plan(cls)
    if not isinstance(document, dict):
        raise Mismatch(checks.kind_of(document), _go_type(cls))
    if strict and isinstance(document, Repeated):
        _check_document(plan, document)
    try:
        return cls(**_given(plan, document, strict))
    except (DecodeError, Mismatch):
        if strict and plan.embeds:
            # The first mistake is the one that is named, whatever struct it is in.
            _check_document(plan, document)
        raise


def _given(plan: _Plan, document: dict[str, object], strict: bool) -> dict[str, object]:
    given: dict[str, object] = {}
    rest: dict[str, object] = {}
    slots = plan.slots
    for key, item in document.items():
        slot = slots.get(key)
        if slot is None:
            if key in plan.keys:
                continue
            if strict:
                raise _unknown(key)
            rest[key] = item
        elif item is not None or (strict and not slot.nullable):
            given[slot.attr] = _read(slot, item, key, strict)
    if plan.embeds:
        _decode_embeds(plan, document, strict, given)
    if rest and plan.unknown:
        given[plan.unknown] = rest
    return given


def _read(slot: _Slot, item: object, key: str, strict: bool) -> object:
    try:
        if strict:
            return slot.check(item)
        return item if slot.decode is None else slot.decode(item)
    except Mismatch as mismatch:
        mismatch.path.append(key)
        raise


def _unknown(key: str) -> DecodeError:
    return DecodeError(f"json: unknown field {quoted(key)}")


def _check_document(plan: _Plan, document: dict[str, object]) -> None:
    for key, item in document.pairs if isinstance(document, Repeated) else document.items():
        slot = plan.checked.get(key)
        if slot is None:
            raise _unknown(key)
        if item is not None or not slot.nullable:
            _checked(slot.check, item, key)


def _decode_embeds(
    plan: _Plan, document: dict[str, object], strict: bool, given: dict[str, object]
) -> None:
    for attr, inner, optional in plan.embeds:
        known = _plan(inner).keys
        part = {key: item for key, item in document.items() if key in known}
        if part or not optional:
            given[attr] = _decode(inner, part, strict)


def loads(cls: type[T], payload: bytes | str, *, strict: bool = False) -> T:
    """`decode` of JSON text; an empty payload is an empty document.

    Raises DecodeError, for broken JSON too.
    """
    if not payload.strip():
        return cls()
    try:
        document = jsontext.parse_exactly(payload) if strict else jsontext.parse(payload)
    except DecodeError:
        if strict:
            return _last_of(cls, payload)
        raise
    if document is None and strict:
        return cls()
    return decode(cls, document, strict=strict)


def _last_of(cls: type[T], payload: bytes | str) -> T:
    """Of several documents each adds to those before; the first mistake is named."""
    added: dict[str, object] = {}
    for document in jsontext.parse_row(payload):
        if document is not None:
            decode(cls, document, strict=True)
            assert isinstance(document, dict)
            added.update(document)
    return decode(cls, added, strict=True)


def dumps(value: object, *, indent: int | None = None) -> bytes:
    """JSON bytes as the real server writes them: no spaces, `<`, `>` and `&` escaped.

    Takes API objects and what `encode` returns. With `indent`, pretty as on a terminal.
    """
    document = encode(value) if is_dataclass(value) and not isinstance(value, type) else value
    return jsontext.written(document, indent or 0)


def key_of(cls: type, attr: str) -> str:
    """The JSON name of a field."""
    return next(slot.key for slot in _plan(cls).slots.values() if slot.attr == attr)


def keys_of(cls: type) -> frozenset[str]:
    """The JSON names of all fields."""
    return frozenset(_plan(cls).keys)


def wire_of(declared: "Field[Any]") -> Wire:
    """How a field was declared; fields without words of their own are always written."""
    return cast(Wire, declared.metadata.get("wire", _DEFAULT_WIRE))


def default_of(declared: "Field[Any]") -> object:
    """A fresh zero value of a field."""
    if declared.default is not MISSING:
        return cast(object, declared.default)
    assert declared.default_factory is not MISSING
    return cast(object, declared.default_factory())


# Types of fields -> converters. None means: as it is.


def _unwrap(kind: object) -> tuple[object, bool]:
    """The type without `| None`, and whether it had one."""
    if get_origin(kind) in (Union, UnionType):
        inner = [part for part in get_args(kind) if part is not NoneType]
        assert len(inner) == 1, kind
        return inner[0], True
    return kind, False


def _mark(kind: object) -> str:
    return str(get_args(kind)[1]) if get_origin(kind) is Annotated else ""


def _item_of(kind: object) -> object:
    return get_args(kind)[1 if get_origin(kind) is dict else 0]


def _encoder(kind: object) -> Convert | None:
    origin = get_origin(kind)
    if origin is tuple:
        inner = _encoder(_item_of(kind))
        return list if inner is None else partial(_encode_items, inner)
    if origin is dict:
        return partial(_encode_mapping, _encoder(_item_of(kind)))
    if kind is float:
        return lambda number: int(number) if number == int(number) else number
    if kind is bytes:
        return lambda data: b64encode(data).decode("ascii")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return attrgetter("_value_")  # as `value`, which is a call in Python
    return encode if is_dataclass(kind) else None


def _encode_items(inner: Convert, items: tuple[object, ...]) -> list[object]:
    return [inner(item) for item in items]


def _encode_mapping(inner: Convert | None, items: dict[str, object]) -> dict[str, object]:
    if inner is None:
        return dict(sorted(items.items()))
    return {key: inner(item) for key, item in sorted(items.items())}


def _decoder(kind: object) -> Convert | None:
    origin = get_origin(kind)
    if origin is tuple:
        zero = _zero_of(_item_of(kind))
        return partial(_decode_items, _decoder(_item_of(kind)), zero, _go_type(kind))
    if origin is dict:
        return partial(_decode_mapping, _decoder(_item_of(kind)), _zero_of(_item_of(kind)))
    if kind is bytes:
        return b64decode
    if isinstance(kind, type) and issubclass(kind, Enum):
        return partial(_decode_word, kind, {member.value: member for member in kind})
    if is_dataclass(kind):
        return partial(_decode_struct, kind, False)
    if _mark(kind) == "time":
        return _decode_time
    return None if kind is object or kind is Any else _checker(kind)


def _decode_items(
    inner: Convert | None, zero: Callable[[], object], wanted: str, items: object
) -> tuple[object, ...]:
    if not isinstance(items, list | tuple):
        raise Mismatch(checks.kind_of(items), wanted)
    return tuple(items if inner is None else [zero() if i is None else inner(i) for i in items])


def _decode_mapping(
    inner: Convert | None, zero: Callable[[], object], items: object
) -> dict[str, object]:
    if not isinstance(items, dict):
        raise Mismatch(checks.kind_of(items), "map[string]string")
    if inner is None:
        return dict(items)
    return {key: zero() if item is None else inner(item) for key, item in items.items()}


def _decode_time(value: object) -> str:
    """Empty, too, as where nobody knows it."""
    return "" if value == "" else checks.check_time(value)


def _decode_struct(cls: Any, strict: bool, document: object) -> object:
    return _decode(cls, document, strict)


def _decode_word(kind: type[Enum], known: dict[object, Enum], value: object) -> Enum:
    """A word of a newer server is kept as it is, so that printing loses nothing."""
    member = known.get(value) if isinstance(value, str) else None
    if member is None:
        if not isinstance(value, str):
            raise Mismatch(checks.kind_of(value), "string")
        member = object.__new__(kind)
        member._name_ = str(value)
        member._value_ = value
    return member


_CHECKS: dict[object, Convert] = {
    str: checks.check_text,
    bool: checks.check_bool,
    float: checks.check_float,
    bytes: checks.check_bytes,
}


def _checker(kind: object) -> Convert:
    origin = get_origin(kind)
    if origin is tuple:
        zero = _zero_of(_item_of(kind))
        return partial(_check_items, _checker(_item_of(kind)), zero, _go_type(kind))
    if origin is dict:
        return partial(_check_mapping, _checker(_item_of(kind)), _zero_of(_item_of(kind)))
    mark = _mark(kind)
    if mark == "time":
        return checks.check_time
    if mark or kind is int:
        return partial(checks.check_integer, wanted=mark or "int")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return partial(checks.check_word, checks.words_of(kind))
    if is_dataclass(kind):
        return partial(_decode_struct, kind, True)
    return _CHECKS.get(kind, lambda value: value)


def _checked(check: Convert, value: object, key: str) -> object:
    try:
        return check(value)
    except Mismatch as mismatch:
        mismatch.path.append(key)
        raise


def _check_items(
    inner: Convert, zero: Callable[[], object], wanted: str, value: object
) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise Mismatch(checks.kind_of(value), wanted)
    return tuple(
        [
            zero() if item is None else _checked(inner, item, str(at))
            for at, item in enumerate(value)
        ]
    )


def _check_mapping(inner: Convert, zero: Callable[[], object], value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Mismatch(checks.kind_of(value), "map[string]string")
    return {
        key: zero() if item is None else _checked(inner, item, key) for key, item in value.items()
    }


def _zero_of(kind: object) -> Callable[[], object]:
    """What null stands for among the items of a list or an object."""
    origin = get_origin(kind)
    return cast(Callable[[], object], get_args(kind)[0] if origin is Annotated else origin or kind)


def _go_type(kind: object) -> str:
    """A type as the real server's sentences name it."""
    if get_origin(kind) is tuple:
        item = _item_of(kind)
        star = "*" if getattr(item, "GO_POINTER", False) else ""
        return f"[]{star}{_go_type(item)}"
    if kind is str:
        return "string"
    if is_dataclass(kind):
        name = getattr(kind, "GO_NAME", "") or cast(type, kind).__name__
        return f"server.{name}"
    return _mark(kind) or str(kind)
