"""Dataclasses that are declared in no time: `__init__` is written when it was called some times.

The standard library writes up to six functions for each class as text and compiles them, 0.35 ms
for a frozen one; for the four hundred classes of a broker that was half of its start (decision 28).
Here one function for all classes, or a closure, does for `__repr__`, `__eq__`, `__hash__` and the
refusal to change what is frozen, as they need no text. `__init__` does, for its parameters: a
descriptor stands in its place, fills the first objects, and puts what it wrote there (decision
64). A class that has fields alone, and inherits none, gets its fields and slots here, too (decision
58). Everything else (other classes, `match`, `replace`, `asdict`) is the standard library's own.

For the type checker this is `dataclasses.dataclass` itself. Differences at runtime: slots are the
rule, there is no `order`, and that a field without a default follows one with a default is told
when the first object is made.
"""

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, InitVar, field, fields
from dataclasses import dataclass as declared
from dataclasses import replace as replaced
from functools import partial
from itertools import repeat
from operator import attrgetter, call
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_origin

T = TypeVar("T")
FILLED_MAX = 4
"""Objects of a class that are made before its `__init__` is written."""

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def dataclass(cls=None, /, **how):
        """As the decorator of the standard library, with slots; see the module."""
        if cls is None:
            return lambda cls: _made(cls, **how)
        return _made(cls, **how)

    def replace(obj, /, **changes):
        """As that of the standard library, in a third of the time for large classes."""
        copy = _copiers.get(type(obj))
        if copy is None:
            copy = _copiers[type(obj)] = _copier(type(obj))
        return copy(obj, changes)


def write_ahead(count: int) -> bool:
    """Write `__init__` of so many classes that had no use for it yet; False when there are none:
    for who has time now, and wants first uses to be as quick as others."""
    for _ in range(min(count, len(_unwritten))):
        _unwritten.pop().write()
    return bool(_unwritten)


def _made(
    cls: type[T], *, slots: bool, frozen: bool = False, kw_only: bool = False, eq: bool = True
) -> type[T]:
    assert slots, f"{cls.__qualname__} needs slots=True"
    own = set(cls.__dict__)
    if "__eq__" in own and cls.__dict__["__hash__"] is None:
        own.remove("__hash__")  # Python's own doing
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # The library would put together a signature for it.
    some = _fields_of(cls, kw_only)
    made = _by_library(cls, kw_only) if some is None else cls
    every = fields(made) if some is None else some.values()  # type: ignore[arg-type]
    init = _Init(frozen=frozen)
    methods: dict[str, object] = {"__init__": init, "__repr__": _repr}
    if eq:
        methods |= _comparing([one.name for one in every if one.compare], frozen=frozen)
    if frozen:
        methods |= _freezing(init, frozenset([one.name for one in every]))
    methods = {name: method for name, method in methods.items() if name not in own}
    if some is not None:
        made = _plain(cls, kw_only, some, methods)
    else:
        for name, method in methods.items():
            setattr(made, name, method)
    init.stands_for(made)
    return made


def _by_library(cls: type[T], kw_only: bool) -> type[T]:
    """Fields and slots, and no method that needs text."""
    return declared(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)


def _plain(
    cls: type[T], kw_only: bool, some: "dict[str, Field[Any]]", methods: dict[str, object]
) -> type[T]:
    """The same in a third of the time, methods included, for a class that has fields alone and
    inherits none."""
    own = cls.__dict__
    template = _TEMPLATES[kw_only]
    body = {name: value for name, value in own.items() if name not in some}
    body.pop("__dict__", None)
    body.pop("__weakref__", None)
    body["__slots__"] = tuple(some)
    body["__dataclass_fields__"] = some
    body["__dataclass_params__"] = template.__dict__["__dataclass_params__"]
    body.setdefault("__match_args__", tuple(one.name for one in some.values() if not one.kw_only))
    body |= methods
    make: Any = type(cls)
    made: type[T] = make(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _fields_of(cls: type, kw_only: bool) -> "dict[str, Field[Any]] | None":
    """None for a class that inherits some, has others, or that the library refuses."""
    if any(base.__dict__.get("__slots__") for base in cls.__mro__[1:-1]):
        return None
    own, some = cls.__dict__, dict[str, Field[Any]]()
    if not _IS_KNOWN or hasattr(cls, "__dataclass_fields__") or "__slots__" in own:
        return None
    for name, kind in own.get("__annotations__", {}).items():
        # Most types are classes, of which that can be told without a comparison.
        special = kind is KW_ONLY or kind is InitVar
        if special or (type(kind) is not type and _is_special(kind)):
            return None
        value = getattr(cls, name, MISSING)
        one: Any = value if isinstance(value, Field) else field(default=value)
        if not one.init or type(one.default).__hash__ is None or name == "self":
            return None
        one.name, one.type, one._field_type = name, kind, _FIELD
        one.kw_only = kw_only if one.kw_only is MISSING else one.kw_only
        some[name] = one
    if any(isinstance(value, Field) and name not in some for name, value in own.items()):
        return None
    return some


def _is_special(kind: object) -> bool:
    """Whether it makes no field of objects, or changes what follows."""
    if isinstance(kind, str):
        return any(mark in kind for mark in _WORDS)
    return isinstance(kind, InitVar) or get_origin(kind) is ClassVar or kind is ClassVar


@declared(init=False, repr=False, eq=False, slots=True)
class _Template:
    one: int


@declared(init=False, repr=False, eq=False, slots=True, kw_only=True)
class _NamedTemplate:
    one: int


_TEMPLATES = (_Template, _NamedTemplate)
"""What the library notes of a class, as it does for those of either kind."""
_FIELD: object = _Template.__dict__["__dataclass_fields__"]["one"]._field_type
_WORDS = ("ClassVar", "InitVar", "KW_ONLY")
_IS_KNOWN = sys.version_info < (3, 14)
"""Annotations are found in another way from then on."""


# Construction


class _Init:
    """In place of the `__init__` of a class, until it is worth to be written: writing takes as
    long as to fill twenty objects field by field, and most classes have one or two at a start."""

    __slots__ = ("_frozen", "_left", "cls")

    def __init__(self, *, frozen: bool) -> None:
        self.cls: Any = object
        self._frozen = frozen
        self._left = FILLED_MAX

    def stands_for(self, cls: type) -> None:
        """Know the class, which is made last."""
        self.cls = cls
        if cls.__dict__["__init__"] is self:
            _unwritten.append(self)

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None or not self._left:
            return self.write().__get__(instance, owner)
        self._left -= 1
        return partial(self._fill, instance)

    def _fill(self, instance: Any, /, *given: Any, **named: Any) -> None:
        """What the function would do."""
        cls, found = self.cls, _bound(self.cls, given, named)
        if found is None:
            self.write()(instance, *given, **named)  # It says what is wrong.
            return
        handed_on: list[Any] = []
        for one, value in found:
            if isinstance(one.type, InitVar):
                handed_on.append(value)
            elif value is MISSING:
                pass  # `__post_init__` sets it.
            elif self._frozen:
                getattr(cls, one.name).__set__(instance, value)
            else:
                setattr(instance, one.name, value)
        if hasattr(cls, "__post_init__"):
            instance.__post_init__(*handed_on)

    def write(self) -> Any:
        """Put the function in its place, unless it is there."""
        cls = self.cls
        if cls.__dict__["__init__"] is self:
            made = _init(cls, frozen=self._frozen)
            _written.add(made)
            setattr(cls, "__init__", made)  # noqa: B010 (mypy: fixed)
        return cls.__dict__["__init__"]


def _bound(
    cls: type, given: tuple[Any, ...], named: dict[str, Any]
) -> "list[tuple[Field[Any], Any]] | None":
    """What each parameter is for a call; None for one that does not fit."""
    places, left = iter(given), dict(named)
    found: list[tuple[Field[Any], Any]] = []
    for one in _parameters(cls):
        value: Any = MISSING
        if one.init:
            value = MISSING if one.kw_only else next(places, MISSING)
            if value is MISSING:
                value = left.pop(one.name, MISSING)
        found.append((one, _own(one) if value is MISSING else value))
        if one.init and found[-1][1] is MISSING:
            return None
    return None if left or next(places, MISSING) is not MISSING else found


def _own(one: Field[Any]) -> Any:
    """What a field has of which nothing is said; MISSING for none."""
    if one.default is MISSING and one.default_factory is not MISSING:
        return one.default_factory()
    return one.default


_unwritten: list[_Init] = []
_written: set[object] = set()
"""Functions that set fields and do nothing else, but for a `__post_init__`."""


def _init(cls: type, *, frozen: bool) -> Any:
    """The function: parameters in the order of fields, those by name alone behind the others."""
    constants: dict[str, Any] = {_ABSENT: _Factory()}
    positional, by_name, handed_on, body = ["self"], ["*"], [], []
    for one in _parameters(cls):
        default = _default(one, constants)
        if one.init:
            (by_name if one.kw_only else positional).append(one.name + default)
        value = _value(one)
        if isinstance(one.type, InitVar):
            handed_on.append(one.name)
        elif value:
            line = f"self.{one.name} = {value}"
            if frozen:
                # By the slot itself: that takes three fifths of `object.__setattr__`.
                constants[_SET + one.name] = getattr(cls, one.name).__set__
                line = f"{_SET}{one.name}(self, {value})"
            body.append(line)
    if hasattr(cls, "__post_init__"):
        body.append(f"self.__post_init__({', '.join(handed_on)})")
    parameters = positional + (by_name if len(by_name) > 1 else [])
    text = f"def __init__({', '.join(parameters)}):\n " + ("\n ".join(body) or "pass")
    exec(text, constants)
    function = constants.pop("__init__")
    function.__qualname__, function.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    types: dict[str, Any] = {one.name: one.type for one in _parameters(cls) if one.init}
    function.__annotations__ = types | {"return": None}
    return function


_EXHAUST = deque[None](maxlen=0).extend
"""Takes all of an iterator and keeps nothing, without a step of the interpreter for each."""
Copy = Callable[[Any, dict[str, Any]], Any]
"""Makes another object with some fields changed."""
_copiers: dict[type, Copy] = {}


def _copier(cls: Any) -> Copy:
    """By slots, where `__init__` does nothing but set them."""
    init = next(one.__dict__["__init__"] for one in cls.__mro__ if "__init__" in one.__dict__)
    init = init.write() if isinstance(init, _Init) else init
    parameters = _parameters(cls)
    settable = all(one.init and not isinstance(one.type, InitVar) for one in parameters)
    if init not in _written or not settable or hasattr(cls, "__post_init__") or not parameters:
        return lambda one, changes: replaced(one, **changes)
    names = [one.name for one in parameters]
    key, places = _key(names), {name: place for place, name in enumerate(names)}
    setters = [getattr(cls, name).__set__ for name in names]
    new = object.__new__

    def copy(one: Any, changes: dict[str, Any]) -> Any:
        values = [*key(one)]
        for name, value in changes.items():
            if name not in places:
                raise TypeError(f"{cls.__name__} has no field {name!r}")
            values[places[name]] = value
        made = new(cls)
        _EXHAUST(map(call, setters, repeat(made), values))
        return made

    return copy


class _Factory:
    """What a field's own value is made in place of; shown so in signatures."""

    def __repr__(self) -> str:
        return "<factory>"


_LITERALS: dict[Any, str] = {list: "[]", dict: "{}"}
"""Made without a call."""
_SET = "_set_"
_ABSENT = "_absent_"
_OF = "_of_"
"""In front of a field's name: its default, or what makes one. Fields have no such names."""


def _parameters(cls: Any) -> list[Field[Any]]:
    """Fields, and what is there for `__post_init__` alone; not what belongs to the class."""
    names = {one.name for one in fields(cls)}
    every: list[Field[Any]] = list(cls.__dataclass_fields__.values())
    return [one for one in every if one.name in names or isinstance(one.type, InitVar)]


def _default(one: Field[Any], constants: dict[str, Any]) -> str:
    if one.default is not MISSING:
        constants[_OF + one.name] = one.default
        return f"={_OF}{one.name}"
    if one.default_factory is not MISSING:
        constants[_OF + one.name] = one.default_factory
        return f"={_ABSENT}"
    return ""


def _value(one: Field[Any]) -> str:
    """What a field is set to; nothing where `__post_init__` does so."""
    if one.default_factory is not MISSING:
        new = _LITERALS.get(one.default_factory, f"{_OF}{one.name}()")
        return f"{new} if {one.name} is {_ABSENT} else {one.name}" if one.init else new
    if one.init:
        return one.name
    return "" if one.default is MISSING else _OF + one.name


# What needs no text


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _comparing(names: list[str], *, frozen: bool) -> dict[str, object]:
    """Equality by fields; with it a hash, if they stay as they are, or none."""
    key = _key(names)

    def __eq__(self: object, other: object) -> bool:
        return key(self) == key(other) if type(self) is type(other) else NotImplemented

    def __hash__(self: object) -> int:
        return hash(key(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _key(names: list[str]) -> Callable[[Any], tuple[object, ...]]:
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda one: (get(one),)


def _freezing(of: _Init, names: frozenset[str]) -> dict[str, object]:
    """Fields stay as they were made, and objects of just this class as a whole."""

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is of.cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(of.cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is of.cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(of.cls, self).__delattr__(name)

    return {
        "__setattr__": __setattr__,
        "__delattr__": __delattr__,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }


def _state(self: Any) -> list[object]:
    """For copies and pickles, which could not set what is frozen."""
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
