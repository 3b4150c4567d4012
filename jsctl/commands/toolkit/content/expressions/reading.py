"""Expressions as closures: what tokens mean, and which operators bind how strongly."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature

from jsctl.commands.toolkit.content.expressions.folding import (
    FOLDS,
    ITEM,
    Code,
    Environment,
)
from jsctl.commands.toolkit.content.expressions.lexing import Token, number_of, text_of
from jsctl.commands.toolkit.content.expressions.moments import method_of
from jsctl.commands.toolkit.content.expressions.operations import negative, operation, truth
from jsctl.errors import UsageError

DEPTH_MAX = 100
_POWERS = {
    "|": 0,
    **dict.fromkeys(("||", "or"), 10),
    **dict.fromkeys(("&&", "and"), 15),
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 20),
    **dict.fromkeys(("in", "not", "matches", "contains", "startsWith", "endsWith"), 20),
    "..": 25,
    **dict.fromkeys("+-", 30),
    **dict.fromkeys("*/%", 60),
    **dict.fromkeys(("**", "^"), 100),
    "??": 500,
}
_UNARY = {"not": 50, "!": 50, "-": 90, "+": 90}
_FROM_RIGHT = ("**", "^")
_AFTER_NOT = ("in", "matches", "contains", "startsWith", "endsWith")
_ORDER = ("<", ">", "<=", ">=")
_CONSTANTS: Mapping[str, object] = {"true": True, "false": False, "nil": None}
_ALL = "$env"
"""The name of all values together."""


class Reader:
    """Builds closures from tokens; binary operators by their power."""

    def __init__(
        self,
        tokens: list[Token],
        functions: Mapping[str, Callable[..., object]],
        names: frozenset[str] | None,
    ) -> None:
        self._tokens, self._functions, self._names = tokens, functions, names
        self._at = self._depth = self._inside = 0
        self._given: list[str] = []
        """Names that `let` gave to values, those of the expression that is read."""
        self.looks = False
        """Whether the expression has the name of a value."""

    def whole(self) -> Code:
        """The expression with nothing behind it. Raises UsageError."""
        code = self._sequence()
        if self._now.kind != "end":
            raise self._unexpected()
        return code

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._now
        self._at += token.kind != "end"
        return token

    def _is(self, *texts: str) -> bool:
        return self._now in texts and self._now.kind in ("mark", "name")

    def _accept(self, *texts: str) -> bool:
        found = self._is(*texts)
        self._at += found
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected()

    def _unexpected(self) -> UsageError:
        what = f"'{self._now}'" if self._now.kind != "end" else "end"
        return UsageError(f"invalid expression: unexpected {what} at {self._now.at}")

    def _name(self) -> Token:
        if self._now.kind != "name":
            raise self._unexpected()
        return self._take()

    def _sequence(self, *ends: str) -> Code:
        """Expressions with semicolons between, of which the last one counts."""
        codes = [self._expression()]
        while self._accept(";") and self._now.kind != "end" and not self._is(*ends):
            codes.append(self._expression())
        return codes[0] if len(codes) == 1 else _last(codes)

    def _expression(self, power: int = 0) -> Code:
        """An operand and the operators that bind at least as strongly."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise UsageError("invalid expression: too deep")
        code = self._any(power)
        self._depth -= 1
        return code

    def _any(self, power: int) -> Code:
        if power == 0 and self._accept("let"):
            return self._declaration()
        if power == 0 and self._accept("if"):
            return self._condition()
        left = self._operand()
        before = ""
        while self._is(*_POWERS) and _POWERS[self._now] >= power:
            if before == "??" and not self._is("??"):
                raise UsageError(
                    f"invalid expression: '{self._now}' at {self._now.at} and ?? need parentheses"
                )
            before = str(self._now)
            left = self._binary(left)
        while power == 0 and self._accept("?"):
            yes = left if self._is(":") else self._expression()
            self._expect(":")
            left = _choice(left, yes, self._expression())
        return left

    def _declaration(self) -> Code:
        name = self._name()
        known = name in self._functions or name in FOLDS or name in (self._names or ())
        if known or name in self._given or name in _CONSTANTS:
            raise UsageError(f"invalid expression: {name} at {name.at} means something already")
        self._expect("=")
        value = self._expression()
        self._expect(";")
        self._given.append(name)
        rest = self._sequence("}", ")")
        self._given.pop()
        return lambda env: rest({**env, name: value(env)})

    def _condition(self) -> Code:
        test = self._expression()
        yes = self._block()
        self._expect("else")
        return _choice(test, yes, self._condition() if self._accept("if") else self._block())

    def _block(self) -> Code:
        self._expect("{")
        code = self._sequence("}")
        self._expect("}")
        return code

    def _binary(self, left: Code) -> Code:
        token = self._take()
        if token == "|":
            return self._members(self._call(self._name(), [left]))
        if token in _ORDER:
            return self._compared(left, str(token))
        negated = token == "not"
        if negated:
            if not self._is(*_AFTER_NOT):
                raise self._unexpected()
            token = self._take()
        power = _POWERS[token]
        right = self._expression(power + (token not in _FROM_RIGHT))
        code = _operation(str(token), left, right)
        return _negation(code) if negated else code

    def _compared(self, left: Code, word: str) -> Code:
        """`1 < n < 9` asks for both."""
        power = _POWERS[word] + 1
        right = self._expression(power)
        code = _operation(word, left, right)
        while self._is(*_ORDER):
            word, left, right = str(self._take()), right, self._expression(power)
            code = _operation("&&", code, _operation(word, left, right))
        return code

    def _operand(self) -> Code:
        if self._is(*_UNARY):
            word = str(self._take())
            inner = self._expression(_UNARY[word])
            if word == "+":
                return inner
            return _minus(inner) if word == "-" else _negation(inner)
        return self._members(self._primary())

    def _primary(self) -> Code:
        token = self._take()
        if token.kind == "number":
            return _constant(number_of(token))
        if token.kind == "text":
            return _constant(text_of(token))
        if token.kind == "item" or (token == "." and self._inside):
            return self._item(token)
        if token.kind == "mark":
            return self._bracket(token)
        if token.kind != "name" or token in _POWERS:
            self._at -= token.kind != "end"
            raise self._unexpected()
        if token in _CONSTANTS:
            return _constant(_CONSTANTS[token])
        return self._call(token, []) if self._is("(") else self._value(token)

    def _item(self, token: Token) -> Code:
        """What a function over a list looks at, or a part of it."""
        if not self._inside:
            raise UsageError(f"invalid expression: unexpected '{token}' at {token.at}")
        if token == ".":
            return _member(_named(ITEM), str(self._name()))
        return _named(str(token))

    def _bracket(self, token: Token) -> Code:
        if token == "(":
            inner = self._sequence(")")
            self._expect(")")
            return inner
        if token == "[":
            return _list(self._several("]"))
        if token == "{":
            return _map(self._pairs())
        if token == "::":
            return self._call(self._name(), [])
        self._at -= 1
        raise self._unexpected()

    def _value(self, token: Token) -> Code:
        if token == _ALL:
            self.looks = True
            return _outside
        if token in self._given:
            return _named(str(token))
        if self._names is not None and token not in self._names:
            raise UsageError(f"invalid expression: unknown name {token} at {token.at}")
        self.looks = True
        return _named(str(token))

    def _several(self, end: str) -> list[Code]:
        found: list[Code] = []
        while not self._accept(end):
            if found:
                self._expect(",")
                if self._accept(end):
                    break
            found.append(self._expression())
        return found

    def _pairs(self) -> list[tuple[Code, Code]]:
        found: list[tuple[Code, Code]] = []
        while not self._accept("}"):
            if found:
                self._expect(",")
                if self._accept("}"):
                    break
            if self._is("("):
                key = self._expression()
            elif self._now.kind in ("number", "text", "name"):
                token = self._take()
                key = _constant(text_of(token) if token.kind == "text" else str(token))
            else:
                raise self._unexpected()
            self._expect(":")
            found.append((key, self._expression()))
        return found

    def _call(self, name: Token, given: list[Code]) -> Code:
        """A function; `given` is what stood before `|`."""
        if name in FOLDS:
            return self._fold(str(name), given)
        function = self._functions.get(name)
        if function is None:
            raise UsageError(f"invalid expression: unknown function {name}")
        if name == "now":
            self.looks = True
        self._expect("(")
        arguments = [*given, *self._several(")")]
        try:
            signature(function).bind(*arguments)
        except TypeError as error:
            raise UsageError(f"invalid expression: {name}: {error}") from None
        return _called(str(name), function, arguments)

    def _fold(self, name: str, given: list[Code]) -> Code:
        fold = FOLDS[name]
        self._expect("(")
        over = given[0] if given else self._expression()
        each: Code | None = None
        more: Code | None = None
        if not self._is(")") and (given or self._accept(",")) and not self._is(")"):
            each = self._each()
            if fold.more and self._accept(",") and not self._is(")"):
                more = self._expression()
        self._accept(",")
        self._expect(")")
        if each is None and not fold.alone:
            raise UsageError(f"invalid expression: {name} needs to be told of each element")
        return fold.code(over, each, more)

    def _each(self) -> Code:
        self._inside += 1
        code = self._block() if self._is("{") else self._expression()
        self._inside -= 1
        return code

    def _members(self, code: Code) -> Code:
        while self._is(".", "?.", "["):
            dotted = self._take() != "["
            if dotted and not (self._tokens[self._at - 1] == "?." and self._accept("[")):
                name = str(self._name())
                if self._accept("("):
                    code = _method(code, name, self._several(")"))
                else:
                    code = _member(code, name)
            else:
                code = self._index(code)
        return code

    def _index(self, code: Code) -> Code:
        """One element, or those from one to another."""
        start = None if self._is(":") else self._expression()
        if not self._accept(":"):
            assert start is not None
            self._expect("]")
            return _index(code, start)
        end = None if self._is("]") else self._expression()
        self._expect("]")
        return _slice(code, start, end)


def _constant(value: object) -> Code:
    return lambda _env: value


def _named(name: str) -> Code:
    """What nobody knows is nil, so that fields which servers leave out can be asked for."""
    return lambda env: env.get(name)


def _outside(env: Environment) -> object:
    return {name: value for name, value in env.items() if not name.startswith(ITEM)}


def _last(codes: Sequence[Code]) -> Code:
    return lambda env: [code(env) for code in codes][-1]


def _called(name: str, function: Callable[..., object], arguments: list[Code]) -> Code:
    def call(env: Environment) -> object:
        values = [one(env) for one in arguments]
        try:
            return function(*values)
        except (TypeError, AttributeError) as error:
            raise TypeError(f"{name}: {error}") from None

    return call


def _method(code: Code, name: str, arguments: list[Code]) -> Code:
    def call(env: Environment) -> object:
        value = code(env)
        return method_of(value, name)(*(one(env) for one in arguments))

    return call


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


def _slice(code: Code, start: Code | None, end: Code | None) -> Code:
    def part(env: Environment) -> object:
        value = code(env)
        if not isinstance(value, str | list | tuple):
            raise TypeError(f"{value!r} has no parts")
        return value[_place(start, env) : _place(end, env)]

    return part


def _place(code: Code | None, env: Environment) -> int | None:
    at = code and code(env)
    if at is not None and not isinstance(at, int):
        raise TypeError("parts begin and end at whole numbers")
    return at


def _list(items: list[Code]) -> Code:
    return lambda env: [one(env) for one in items]


def _map(pairs: list[tuple[Code, Code]]) -> Code:
    def made(env: Environment) -> object:
        keys = [key(env) for key, _ in pairs]
        if not all(isinstance(key, str) for key in keys):
            raise TypeError("the keys of a map are texts")
        return {key: value(env) for key, (_, value) in zip(keys, pairs, strict=True)}

    return made


def _negation(code: Code) -> Code:
    return lambda env: not truth(code(env))


def _minus(code: Code) -> Code:
    return lambda env: negative(code(env))


def _choice(test: Code, yes: Code, no: Code) -> Code:
    return lambda env: yes(env) if truth(test(env)) else no(env)


def _operation(word: str, left: Code, right: Code) -> Code:
    if word in ("&&", "and"):
        return lambda env: truth(left(env)) and truth(right(env))
    if word in ("||", "or"):
        return lambda env: truth(left(env)) or truth(right(env))
    if word == "??":
        return lambda env: found if (found := left(env)) is not None else right(env)
    function = operation(word)
    return lambda env: function(left(env), right(env))
