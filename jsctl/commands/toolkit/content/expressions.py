"""Expressions that choose things: `state.messages > 100 && config.name matches "^ORD"`.

The words are those of the language that `nats` uses for `--expression` and `--filter`: literals,
names, members, indexes, arithmetic, comparison, `in`, `matches`, `contains`, `startsWith`,
`endsWith`, `?:`, `??`, and functions over text and lists. An expression is compiled once into
closures; its length and depth are bounded.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from jsctl.errors import UsageError

LENGTH_MAX = 10_000
DEPTH_MAX = 100
OF_ASSETS = frozenset(("config", "state", "info"))
"""What expressions about streams and consumers can ask for."""
Environment = Mapping[str, object]
Code = Callable[[Environment], object]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`)"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<mark>\?\.|\?\?|\*\*|\.\.|&&|\|\||==|!=|<=|>=|[-+*/%^<>!?:.,()\[\]{}#|]))"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_POWERS = {
    "||": 10,
    "or": 10,
    "??": 11,
    "&&": 15,
    "and": 15,
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 20),
    **dict.fromkeys(("in", "not", "matches", "contains", "startsWith", "endsWith"), 20),
    "..": 25,
    "+": 30,
    "-": 30,
    "*": 60,
    "/": 60,
    "%": 60,
    "**": 100,
    "^": 100,
}
_UNARY_POWER = 50
_ITEM = "#"


class _Token(str):
    """Some text of the expression and what it is: number, text, name, mark or end."""

    kind: str
    at: int


def compiled(
    source: str,
    functions: Mapping[str, Callable[..., object]] | None = None,
    *,
    names: frozenset[str] | None = None,
) -> Callable[[Environment], bool]:
    """A test over named values; raises UsageError for what is no expression.

    `functions` are some beside those that every expression has, `names` all values that there are:
    others are refused, or nothing where it is not known which there are.
    One that looks at no value is tried here, as it would be wrong about all that there is.
    The test itself raises UsageError when its values do not fit, as text against a number.
    """
    if len(source) > LENGTH_MAX:
        raise UsageError("invalid expression: too long")
    reader = _Reader(_tokens(source), {**_FUNCTIONS, **(functions or {})}, names)
    code = reader.expression()
    reader.expect_end()

    def test(environment: Environment) -> bool:
        try:
            found = code(environment)
        except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError) as error:
            raise UsageError(f"invalid expression: {error}") from None
        if not isinstance(found, bool):
            raise UsageError("invalid expression: it does not give true or false")
        return found

    if not reader.looks:
        test({})
    return test


def _tokens(source: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while source[at:].strip():
        match = _TOKEN.match(source, at)
        if match is None or match.lastgroup is None:
            rest = source[at:].lstrip()
            where = len(source) - len(rest)
            raise UsageError(f"invalid expression: unexpected {rest[:1]!r} at {where}")
        found.append(_made(match[match.lastgroup], match.lastgroup, match.start(match.lastgroup)))
        at = match.end()
    return [*found, _made("", "end", len(source))]


def _made(text: str, kind: str, at: int) -> _Token:
    token = _Token(text)
    token.kind, token.at = kind, at
    return token


class _Reader:
    """Builds closures from tokens; binary operators by their power."""

    def __init__(
        self,
        tokens: list[_Token],
        functions: Mapping[str, Callable[..., object]],
        names: frozenset[str] | None,
    ) -> None:
        self._tokens, self._functions, self._names = tokens, functions, names
        self._at = 0
        self._depth = 0
        self.looks = False
        """Whether the expression has the name of a value."""

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._now
        self._at += 1
        return token

    def _accept(self, text: str) -> bool:
        if self._now == text and self._now.kind in ("mark", "name"):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected()

    def _unexpected(self) -> UsageError:
        what = f"'{self._now}'" if self._now.kind != "end" else "end"
        return UsageError(f"invalid expression: unexpected {what} at {self._now.at}")

    def expect_end(self) -> None:
        """Raises UsageError if anything is left."""
        if self._now.kind != "end":
            raise self._unexpected()

    def expression(self, power: int = 0) -> Code:
        """An operand and the operators that bind at least as strongly."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise UsageError("invalid expression: too deep")
        left = self._unary()
        while self._now.kind in ("mark", "name") and _POWERS.get(self._now, -1) >= max(power, 1):
            left = self._binary(left)
        if power == 0 and self._accept("?"):
            yes = self.expression()
            self._expect(":")
            left = _choice(left, yes, self.expression())
        self._depth -= 1
        return left

    def _binary(self, left: Code) -> Code:
        word = str(self._take())
        negated = word == "not"
        if negated:
            word = str(self._take())
            if word not in ("in", "matches", "contains", "startsWith", "endsWith"):
                self._at -= 1
                raise self._unexpected()
        power = _POWERS[word]
        right = self.expression(power + (word not in ("**", "^")))
        code = _operation(word, left, right)
        return _negation(code) if negated else code

    def _unary(self) -> Code:
        if self._accept("!") or self._accept("not"):
            return _negation(self.expression(_UNARY_POWER))
        if self._accept("-"):
            return _minus(self.expression(_UNARY_POWER))
        if self._accept("+"):
            return self.expression(_UNARY_POWER)
        return self._members(self._primary())

    def _primary(self) -> Code:
        token = self._take()
        if token.kind == "number":
            return _constant(_number(token))
        if token.kind == "text":
            return _constant(_unquoted(token))
        if token == "(":
            inner = self.expression()
            self._expect(")")
            return inner
        if token == "[":
            return _list(self._several("]"))
        if token == _ITEM:
            return _named(_ITEM)
        if token == ".":
            return _member(_named(_ITEM), self._name())
        if token.kind != "name":
            self._at -= 1
            raise self._unexpected()
        if token in ("true", "false", "nil"):
            return _constant({"true": True, "false": False, "nil": None}[token])
        return self._call(token) if self._accept("(") else self._value(token)

    def _value(self, token: _Token) -> Code:
        if self._names is not None and token not in self._names:
            raise UsageError(f"invalid expression: unknown name {token} at {token.at}")
        self.looks = True
        return _named(token)

    def _name(self) -> str:
        if self._now.kind != "name":
            raise self._unexpected()
        return str(self._take())

    def _several(self, end: str) -> list[Code]:
        found: list[Code] = []
        while not self._accept(end):
            if found:
                self._expect(",")
            found.append(self.expression())
        return found

    def _call(self, name: str) -> Code:
        if name in _OVER_LISTS:
            over = self.expression()
            each: Code | None = None
            if self._accept(","):
                braces = self._accept("{")
                each = self.expression()
                if braces:
                    self._expect("}")
            self._expect(")")
            return _over_list(name, over, each)
        function = self._functions.get(name)
        if function is None:
            raise UsageError(f"invalid expression: unknown function {name}")
        arguments = self._several(")")
        return lambda env: function(*(one(env) for one in arguments))

    def _members(self, code: Code) -> Code:
        while True:
            if self._accept(".") or self._accept("?."):
                code = _member(code, self._name())
            elif self._accept("["):
                code = _index(code, self.expression())
                self._expect("]")
            else:
                return code


def _number(text: str) -> int | float:
    plain = text.replace("_", "")
    return int(plain) if plain.isdigit() else float(plain)


def _unquoted(text: str) -> str:
    if text.startswith("`"):
        return text[1:-1]
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text[1:-1])


def _constant(value: object) -> Code:
    return lambda _env: value


def _named(name: str) -> Code:
    """What nobody knows is nil, so that fields which servers leave out can be asked for."""
    return lambda env: env.get(name)


def _member(code: Code, name: str) -> Code:
    def member(env: Environment) -> object:
        value = code(env)
        return value.get(name) if isinstance(value, Mapping) else None

    return member


def _index(code: Code, at: Code) -> Code:
    def item(env: Environment) -> object:
        value, key = code(env), at(env)
        if isinstance(value, Mapping):
            return value.get(key)
        if isinstance(value, Sequence) and isinstance(key, int):
            return value[key] if -len(value) <= key < len(value) else None
        return None

    return item


def _list(items: list[Code]) -> Code:
    return lambda env: [one(env) for one in items]


def _negation(code: Code) -> Code:
    return lambda env: not _truth(code(env))


def _minus(code: Code) -> Code:
    return lambda env: -cast("int", code(env))


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value


def _choice(test: Code, yes: Code, no: Code) -> Code:
    return lambda env: yes(env) if _truth(test(env)) else no(env)


def _operation(word: str, left: Code, right: Code) -> Code:
    if word in ("&&", "and"):
        return lambda env: _truth(left(env)) and _truth(right(env))
    if word in ("||", "or"):
        return lambda env: _truth(left(env)) or _truth(right(env))
    if word == "??":
        return lambda env: found if (found := left(env)) is not None else right(env)
    if word == "matches":
        return _matches(left, right)
    function = _OPERATORS[word]
    return lambda env: function(left(env), right(env))


def _matches(left: Code, right: Code) -> Code:
    def match(env: Environment) -> bool:
        try:
            return re.search(str(right(env)), str(left(env))) is not None
        except re.error as error:
            raise ValueError(f"{right(env)!r}: {error}") from None

    return match


def _contains(left: object, right: object) -> bool:
    return str(right) in left if isinstance(left, str) else False


def _within(left: object, right: object) -> bool:
    return left in right if isinstance(right, Mapping | Sequence) else False


def _ordered(compare: Callable[[object, object], bool]) -> Callable[[object, object], object]:
    def ordered(left: object, right: object) -> bool:
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if numbers or (isinstance(left, str) and isinstance(right, str)):
            return compare(left, right)
        raise TypeError(f"{left!r} and {right!r} cannot be compared")

    return ordered


def _power(left: object, right: object) -> float:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError("a power needs numbers")
    try:
        return float(pow(float(left), float(right)))
    except OverflowError:
        raise ValueError("a power is too large") from None


def _added(left: object, right: object) -> object:
    both = left, right
    if all(isinstance(one, str) for one in both) or all(
        isinstance(one, int | float) for one in both
    ):
        return left + right  # type: ignore[operator] # of one kind
    raise TypeError(f"{left!r} and {right!r} cannot be added")


def _of_numbers(compute: Callable[..., object]) -> Callable[[object, object], object]:
    def checked(left: object, right: object) -> object:
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise TypeError(f"{left!r} and {right!r} are not numbers")
        return compute(left, right)

    return checked


_RANGE_MAX = 100_000


def _range(left: int, right: int) -> list[int]:
    if right - left >= _RANGE_MAX:
        raise ValueError("a range is too long")
    return list(range(left, right + 1))


_OPERATORS: Mapping[str, Callable[[object, object], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": _ordered(operator.lt),  # type: ignore[arg-type] # of one kind
    ">": _ordered(operator.gt),  # type: ignore[arg-type]
    "<=": _ordered(operator.le),  # type: ignore[arg-type]
    ">=": _ordered(operator.ge),  # type: ignore[arg-type]
    "+": _added,
    "-": _of_numbers(operator.sub),
    "*": _of_numbers(operator.mul),
    "/": _of_numbers(operator.truediv),
    "%": _of_numbers(operator.mod),
    "**": _power,
    "^": _power,
    "..": _of_numbers(_range),
    "in": _within,
    "contains": _contains,
    "startsWith": lambda left, right: str(left).startswith(str(right)),
    "endsWith": lambda left, right: str(left).endswith(str(right)),
}


def _length(value: object) -> int:
    return len(value) if isinstance(value, str | Mapping | Sequence) else 0


def _numbers(values: tuple[object, ...]) -> list[float]:
    flat = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
    return [cast("float", one) for one in flat]


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "len": _length,
    "lower": lambda text: str(text).lower(),
    "upper": lambda text: str(text).upper(),
    "trim": lambda text: str(text).strip(),
    "trimPrefix": lambda text, prefix: str(text).removeprefix(str(prefix)),
    "trimSuffix": lambda text, suffix: str(text).removesuffix(str(suffix)),
    "split": lambda text, mark: str(text).split(str(mark)),
    "join": lambda items, mark="": str(mark).join(map(str, items)),
    "hasPrefix": lambda text, prefix: str(text).startswith(str(prefix)),
    "hasSuffix": lambda text, suffix: str(text).endswith(str(suffix)),
    "indexOf": lambda text, part: str(text).find(str(part)),
    "int": lambda value: int(float(value)),
    "float": float,
    "string": str,
    "abs": abs,
    "ceil": lambda value: float(-(-value // 1)),
    "floor": lambda value: float(value // 1),
    "round": lambda value: float(round(value)),
    "min": lambda *values: min(_numbers(values)),
    "max": lambda *values: max(_numbers(values)),
    "sum": lambda *values: sum(_numbers(values)),
    "keys": lambda value: list(value) if isinstance(value, Mapping) else [],
    "values": lambda value: list(value.values()) if isinstance(value, Mapping) else [],
    "first": lambda items: items[0] if items else None,
    "last": lambda items: items[-1] if items else None,
}
_OVER_LISTS = ("all", "any", "none", "one", "filter", "map", "count")


def _over_list(name: str, over: Code, each: Code | None) -> Code:
    def run(env: Environment) -> object:
        found = over(env)
        items: Sequence[object] = found if isinstance(found, list | tuple) else ()
        results = [each(_inner(env, item)) if each else item for item in items]
        if name == "map":
            return results
        kept = [item for item, result in zip(items, results, strict=True) if _truth(result)]
        counts: Mapping[str, object] = {
            "all": len(kept) == len(items),
            "any": bool(kept),
            "none": not kept,
            "one": len(kept) == 1,
            "filter": kept,
            "count": len(kept),
        }
        return counts[name]

    return run


def _inner(env: Environment, item: object) -> Environment:
    members = item if isinstance(item, Mapping) else {}
    return {**env, **members, _ITEM: item}
