"""`jsctl.dataclass` beside the decorator of the standard library, on the same bodies."""

import copy
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import InitVar, field
from functools import partial
from typing import Any, ClassVar

import pytest

import jsctl.api.stream
import jsctl.broker.options
import jsctl.dataclass

Decorate = Callable[..., Any]


def plain(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        """Text."""

        x: int
        y: int = 2
        marks: list[int] = field(default_factory=list)

    return Point


def frozen(decorate: Decorate) -> type:
    @decorate(frozen=True, slots=True)
    class Point:
        """Text."""

        x: int
        y: int = 2
        marks: list[int] = field(default_factory=list, compare=False, repr=False)
        kind: ClassVar[str] = "point"

    return Point


def by_name(decorate: Decorate) -> type:
    @decorate(frozen=True, slots=True, kw_only=True)
    class Point:
        """Text."""

        y: int = 2
        x: int

    return Point


def mixed(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        """Text."""

        y: int = field(default=2, kw_only=True)
        x: int
        _: dataclasses.KW_ONLY
        z: int = 3

    return Point


def without_equality(decorate: Decorate) -> type:
    @decorate(slots=True, eq=False)
    class Point:
        """Text."""

        x: int

    return Point


def finished_later(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        """Text."""

        x: InitVar[int]
        y: int = field(init=False)
        z: int = field(init=False, default=4)
        w: list[int] = field(init=False, default_factory=list)
        v: InitVar[int] = 5  # type: ignore[assignment]  # It is not told by whom it is decorated

        def __post_init__(self, x: int, v: int) -> None:
            self.y = 2 * x + v

    return Point


def derived(decorate: Decorate) -> type:
    @decorate(frozen=True, slots=True)
    class Base:
        """Text."""

        x: int
        y: int = 2

    @decorate(frozen=True, slots=True)
    class Point(Base):
        """Text."""

        y: int = 3
        z: int = 4

    return Point


def with_methods_of_its_own(decorate: Decorate) -> type:
    @decorate(frozen=True, slots=True)
    class Point:
        """Text."""

        x: int
        y: int = 2

        def __repr__(self) -> str:
            return "!"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Point) and self.x == other.x

    return Point


def with_everything_of_its_own(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        """Text."""

        x: int

        def __init__(self, x: int) -> None:
            self.x = x + 1

        def __hash__(self) -> int:
            return self.x

    return Point


def empty(decorate: Decorate) -> type:
    @decorate(frozen=True, slots=True)
    class Point:
        """Text."""

    return Point


def single(decorate: Decorate) -> type:
    @decorate(frozen=True, slots=True)
    class Point:
        """Text."""

        x: float

    return Point


BODIES = (
    plain,
    frozen,
    by_name,
    mixed,
    without_equality,
    finished_later,
    derived,
    with_methods_of_its_own,
    with_everything_of_its_own,
    empty,
    single,
)
NAN = float("nan")
CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((NAN,), {}),
    ((1, 2), {}),
    ((1,), {"y": 2}),
    ((), {"x": 1}),
    ((), {"x": 1, "y": 7}),
    ((1, 2, [3]), {}),
    ((1, 2, [3], None), {}),
    ((1, 2, 3, 4, 5), {}),
    ((1,), {"unknown": 2}),
    ((1,), {"x": 2}),
)


def outcome(work: Callable[[], Any]) -> Any:
    """What comes of it, errors by their kind and text."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 (both sides raise the same)
        return type(error), str(error)


def seen(cls: Any) -> Iterator[Any]:
    """All that can be seen of a class and its objects, without what differs by identity."""
    yield str(inspect.signature(cls))
    yield getattr(cls, "__match_args__", None), cls.__doc__, cls.__qualname__
    yield [(one.name, one.init, one.kw_only) for one in dataclasses.fields(cls)]
    yield cls.__hash__ is None, "__hash__" in cls.__dict__
    for positional, named in CALLS:
        made = outcome(lambda p=positional, n=named: cls(*p, **n))  # type: ignore[misc]
        if isinstance(made, tuple):
            yield made
            continue
        again, other = cls(*positional, **named), cls(**named | {"x": 9}) if named else None
        yield repr(made), repr(dataclasses.asdict(made))
        yield made == again, made != again, made == other, made == 1
        yield outcome(lambda m=made, a=again: hash(m) == hash(a))  # type: ignore[misc]
        for change in (copy.copy(made), copy.deepcopy(made)):
            yield repr(change)
        yield outcome(lambda m=made: repr(dataclasses.replace(m, x=8)))  # type: ignore[misc]
        for name in [one.name for one in dataclasses.fields(made)]:
            yield outcome(lambda m=made, n=name: setattr(m, n, 5))  # type: ignore[misc]
            yield outcome(lambda m=made, n=name: delattr(m, n))  # type: ignore[misc]
        yield outcome(lambda m=made: repr(m))  # type: ignore[misc]


@pytest.mark.parametrize("body", BODIES)
def test_classes_are_those_of_the_standard_library(body: Callable[[Decorate], type]) -> None:
    ours, theirs = body(jsctl.dataclass.dataclass), body(dataclasses.dataclass)
    assert list(seen(ours)) == list(seen(theirs))


def test_each_object_gets_a_default_of_its_own() -> None:
    cls = plain(jsctl.dataclass.dataclass)
    first, second = cls(1), cls(1)
    first.marks.append(1)
    assert not second.marks


@pytest.mark.parametrize("body", BODIES)
def test_first_objects_are_those_of_the_standard_library(body: Callable[[Decorate], type]) -> None:
    for positional, named in CALLS:
        ours: Any = body(jsctl.dataclass.dataclass)
        theirs: Any = body(dataclasses.dataclass)
        init = ours.__dict__["__init__"]
        made, want = (outcome(partial(cls, *positional, **named)) for cls in (ours, theirs))
        assert repr(made) == repr(want)
        if not isinstance(made, tuple):
            assert dataclasses.asdict(made).keys() == dataclasses.asdict(want).keys()
            assert ours.__dict__["__init__"] is init, "nothing is written for the first one"
            again = ours(*positional, **named)
            for _ in range(jsctl.dataclass.FILLED_MAX):
                again = ours(*positional, **named)
            assert repr(again) == repr(made)


def test_one_of_the_first_calls_writes_what_all_others_use() -> None:
    cls = frozen(jsctl.dataclass.dataclass)
    for _ in range(jsctl.dataclass.FILLED_MAX):
        assert not inspect.isfunction(cls.__dict__["__init__"])
        cls(1)
    cls(1)
    written = cls.__dict__["__init__"]
    assert inspect.isfunction(written)
    cls(2)
    assert cls.__dict__["__init__"] is written


def test_who_inherits_without_fields_of_its_own_is_made_by_its_base() -> None:
    base: Any = frozen(jsctl.dataclass.dataclass)
    below = type("Below", (base,), {})(1)
    below.more = 3  # Frozen are the fields
    with pytest.raises(dataclasses.FrozenInstanceError):
        below.x = 2
    assert (below.x, below.more) == (1, 3) and below != base(1)


def test_an_object_that_holds_itself_can_be_shown() -> None:
    made = plain(jsctl.dataclass.dataclass)(1)
    made.marks.append(made)
    assert repr(made).endswith("marks=[...])")


def test_slots_are_the_rule() -> None:
    with pytest.raises(TypeError, match="slots"):
        jsctl.dataclass.dataclass(type("Bare", (), {"__annotations__": {"x": int}}))


def modules() -> Iterator[str]:
    for package in (jsctl.api, jsctl.broker):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield found.name


def test_all_classes_of_the_broker_can_be_written() -> None:
    for name in modules():
        importlib.import_module(name)
    while jsctl.dataclass.write_ahead(100):
        pass
    assert not jsctl.dataclass.write_ahead(1)
    for cls in jsctl.broker.options.Options, jsctl.api.stream.StreamConfig:
        assert inspect.isfunction(cls.__dict__["__init__"])


def _shown_copy(replace: Callable[..., object], made: object, change: dict[str, int]) -> str:
    return repr(replace(made, **change))


@pytest.mark.parametrize("body", BODIES)
def test_copies_with_changes_are_those_of_the_standard_library(
    body: Callable[[Decorate], type],
) -> None:
    ours: Any = body(jsctl.dataclass.dataclass)
    made = outcome(lambda: ours(1))
    if isinstance(made, tuple):
        made = outcome(lambda: ours(x=1))
    if isinstance(made, tuple):
        made = ours()
    replaces = (jsctl.dataclass.replace, dataclasses.replace)
    for change in ({}, {"x": 8}, {"y": 9}, {"x": 8, "y": 9}, {"nothing": 1}, {"z": 3}):
        found = [outcome(partial(_shown_copy, one, made, change)) for one in replaces]
        assert found[0] == found[1] or found[0][0] is found[1][0] is TypeError


def test_a_copy_is_another_object_of_the_same_class() -> None:
    made: Any = frozen(jsctl.dataclass.dataclass)(1)
    again = jsctl.dataclass.replace(made)
    assert again == made and again is not made and again.marks is made.marks
    assert inspect.isfunction(type(made).__dict__["__init__"]), "slots are set one by one"
    below = type("Below", (type(made),), {})(1)
    assert type(jsctl.dataclass.replace(below, y=3)) is type(below)


def _field_without_a_type(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        x: int
        y = field(default=1)

    return Point


def _mutable_default(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        x: list[int] = []  # noqa: RUF012 (what is to be refused)

    return Point


def _slots_of_its_own(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        __slots__ = ("x",)
        x: int

    return Point


@pytest.mark.parametrize("body", [_field_without_a_type, _mutable_default, _slots_of_its_own])
def test_what_the_standard_library_refuses_is_refused_in_its_words(
    body: Callable[[Decorate], type],
) -> None:
    told = []
    for decorate in (dataclasses.dataclass, jsctl.dataclass.dataclass):
        with pytest.raises((TypeError, ValueError)) as refused:
            body(decorate)
        told.append((type(refused.value), str(refused.value)))
    assert told[0] == told[1]


def _words_for_types(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        x: "int"
        y: "ClassVar[int]" = 7
        z: "int | None" = None

    return Point


def _by_name(decorate: Decorate) -> type:
    @decorate(slots=True)
    class Point:
        x: int
        y: int = field(kw_only=True, default=3, repr=False, compare=False)

    return Point


@pytest.mark.parametrize("body", [_words_for_types, _by_name])
def test_fields_are_those_of_the_standard_library(body: Callable[[Decorate], type]) -> None:
    ours, theirs = body(jsctl.dataclass.dataclass), body(dataclasses.dataclass)
    assert list(map(repr, dataclasses.fields(ours))) == list(map(repr, dataclasses.fields(theirs)))
    for name in ("__match_args__", "__slots__"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert repr(ours(x=1)) == repr(theirs(x=1))
