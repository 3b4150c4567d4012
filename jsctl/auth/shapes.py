"""Whether decoded claims have the types that they declare.

The codec takes over what a document says and looks at types only where it is strict, and strict
it refuses the keys of newer versions, which claims keep. A JWT is anybody's, so it is looked at
here, once, before anything is done with it.
"""

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import cast, get_args, get_origin, get_type_hints

from jsctl.api.codec import DecodeError

NUMBER_END = 2**63
"""Numbers have 64 bits, with a sign."""


def check_shape(value: object) -> None:
    """Raises DecodeError for the first field, of claims or within them, of another type."""
    for name, kind in _declared(cast(Hashable, type(value))):
        if not _fits(getattr(value, name), kind):
            raise DecodeError(f"unexpected shape of {name.rstrip('_')}")


@cache
def _declared(cls: Hashable) -> tuple[tuple[str, object], ...]:
    assert isinstance(cls, type) and is_dataclass(cls), cls
    hints = get_type_hints(cls)
    return tuple((one.name, hints[one.name]) for one in fields(cls))


def _fits(value: object, kind: object) -> bool:
    if isinstance(kind, type) and is_dataclass(kind):
        if not isinstance(value, kind):
            return False
        check_shape(value)
        return True
    if kind is int:
        return type(value) is int and -NUMBER_END <= value < NUMBER_END
    if kind in (str, bool, NoneType):
        return isinstance(value, kind)
    if get_origin(kind) is UnionType:
        return any(_fits(value, one) for one in get_args(kind))
    return _fits_many(value, kind)


def _fits_many(value: object, kind: object) -> bool:
    """A tuple of one type or a mapping of texts; anything else may be whatever it is."""
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        return isinstance(value, tuple) and all(_fits(one, inner) for one in value)
    if get_origin(kind) is dict:
        inner = get_args(kind)[1]
        return isinstance(value, dict) and all(_fits(one, inner) for one in value.values())
    return True
