"""Functions of expressions that are told what to do with each element of a list."""

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key

from jsctl.commands.toolkit.content.expressions.operations import added, is_list, less, truth
from jsctl.dataclass import dataclass

Environment = Mapping[str, object]
Code = Callable[[Environment], object]
ITEM = "#"
INDEX = "#index"
SO_FAR = "#acc"

_Fold = Callable[[Sequence[object], list[object]], object]
"""Takes the elements and what was said of each."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A function over lists: whether it takes a list `alone`, and something behind the rest."""

    code: Callable[[Code, Code | None, Code | None], Code]
    alone: bool = False
    more: bool = False


def _items(value: object) -> Sequence[object]:
    """What a server left out is empty."""
    if value is None:
        return ()
    if not is_list(value):
        raise TypeError(f"{value!r} is no list")
    return value


def _inner(env: Environment, item: object, at: int) -> Environment:
    members = item if isinstance(item, Mapping) else {}
    return {**env, **members, ITEM: item, INDEX: at}


def _over(fold: _Fold) -> Callable[[Code, Code | None, Code | None], Code]:
    def made(over: Code, each: Code | None, _more: Code | None) -> Code:
        def run(env: Environment) -> object:
            items = _items(over(env))
            if each is None:
                return fold(items, list(items))
            return fold(items, [each(_inner(env, one, at)) for at, one in enumerate(items)])

        return run

    return made


def _kept(items: Sequence[object], said: list[object]) -> list[object]:
    return [item for item, yes in zip(items, said, strict=True) if truth(yes)]


def _places(said: list[object]) -> list[int]:
    return [at for at, yes in enumerate(said) if truth(yes)]


def _sum(_items: Sequence[object], said: list[object]) -> object:
    total: object = 0
    for one in said:
        total = added(total, one)
    return total


def _found(which: int) -> _Fold:
    def found(items: Sequence[object], said: list[object]) -> object:
        kept = _kept(items, said)
        return kept[which] if kept else None

    return found


def _found_at(which: int) -> _Fold:
    def found(_items: Sequence[object], said: list[object]) -> object:
        places = _places(said)
        return places[which] if places else None

    return found


def _grouped(items: Sequence[object], said: list[object]) -> object:
    groups: dict[object, list[object]] = {}
    for item, key in zip(items, said, strict=True):
        groups.setdefault(key, []).append(item)
    return groups


def in_order(items: Sequence[object], keys: Sequence[object], order: object) -> list[object]:
    """Sorted by their keys. Raises TypeError, ValueError."""
    if order not in (None, "asc", "desc"):
        raise ValueError(f"the order {order!r} is neither asc nor desc")
    sign = -1 if order == "desc" else 1

    def compared(one: tuple[object, object], other: tuple[object, object]) -> int:
        if less(one[0], other[0]):
            return -sign
        return sign if less(other[0], one[0]) else 0

    pairs = sorted(zip(keys, items, strict=True), key=cmp_to_key(compared))
    return [item for _, item in pairs]


def _sort_by(over: Code, each: Code | None, more: Code | None) -> Code:
    assert each is not None

    def run(env: Environment) -> object:
        items = _items(over(env))
        keys = [each(_inner(env, one, at)) for at, one in enumerate(items)]
        return in_order(items, keys, more and more(env))

    return run


def _reduce(over: Code, each: Code | None, more: Code | None) -> Code:
    assert each is not None

    def run(env: Environment) -> object:
        items = _items(over(env))
        if more is None and not items:
            raise ValueError("reduce of an empty list has nothing to begin with")
        found = more(env) if more else items[0]
        for at, one in enumerate(items):
            if at or more:
                found = each({**_inner(env, one, at), SO_FAR: found})
        return found

    return run


FOLDS: Mapping[str, Fold] = {
    "all": Fold(_over(lambda items, said: len(_kept(items, said)) == len(items))),
    "any": Fold(_over(lambda items, said: bool(_kept(items, said)))),
    "none": Fold(_over(lambda items, said: not _kept(items, said))),
    "one": Fold(_over(lambda items, said: len(_kept(items, said)) == 1)),
    "filter": Fold(_over(_kept)),
    "map": Fold(_over(lambda _items, said: said)),
    "count": Fold(_over(lambda items, said: len(_kept(items, said))), alone=True),
    "sum": Fold(_over(_sum), alone=True),
    "find": Fold(_over(_found(0))),
    "findLast": Fold(_over(_found(-1))),
    "findIndex": Fold(_over(_found_at(0))),
    "findLastIndex": Fold(_over(_found_at(-1))),
    "groupBy": Fold(_over(_grouped)),
    "sortBy": Fold(_sort_by, more=True),
    "reduce": Fold(_reduce, more=True),
}
