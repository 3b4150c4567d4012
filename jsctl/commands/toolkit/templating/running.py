"""Templates that are run."""

from collections.abc import Iterable, Mapping, Sequence

from jsctl.api.strict import quoted
from jsctl.commands.toolkit.templating.budget import Budget
from jsctl.commands.toolkit.templating.builtins import AND, BUILTINS, CALL, OR
from jsctl.commands.toolkit.templating.lexing import LEFT, RIGHT
from jsctl.commands.toolkit.templating.nodes import (
    Action,
    Body,
    Branch,
    Call,
    Chain,
    Command,
    Dot,
    Field,
    Function,
    Jump,
    Literal,
    Node,
    Operand,
    Pipeline,
    Text,
    Variable,
)
from jsctl.commands.toolkit.templating.numbers import INT64_MAX, INT64_MIN
from jsctl.commands.toolkit.templating.parsing import TemplateError, parse
from jsctl.commands.toolkit.templating.values import (
    NO_VALUE,
    Callee,
    Record,
    shown,
    truth,
    type_of,
)

CALLS_MAX = 200
"""Templates in templates: fewer than in Go, and many more than anybody writes."""

COUNT_MAX = 10_000_000
"""Of a `range` over a number."""

MISSING = object()
"""Nothing came through the pipe."""

_WANTED = {"int": "integer", "float64": "float", "uint": "unsigned integer"}


class Template:
    """One that has been read; it can be run many times."""

    def __init__(
        self,
        name: str,
        text: str,
        functions: Mapping[str, Callee],
        left: str = LEFT,
        right: str = RIGHT,
    ) -> None:
        """Raises TemplateError."""
        self.name, self.text = name, text
        self.functions = {**BUILTINS, **functions}
        self.bodies = parse(name, text, self.functions, left, right)

    def run(
        self,
        data: object = None,
        functions: Mapping[str, Callee] | None = None,
        budget: Budget | None = None,
    ) -> str:
        """The text that it makes of the data, with other functions of the same names.

        Without a budget it may take what it wants. Raises TemplateError, and JsctlError when the
        budget is used up.
        """
        self.functions |= functions or {}
        try:
            return _Run(self, self.name, data, 0, budget).whole()
        except RecursionError:
            raise TemplateError(f"template: {self.name}: exceeded maximum template depth") from None


class _Break(Exception):
    """Of a `range`."""


class _Continue(Exception):
    """As above."""


class _Run:
    """One run of one body: its variables, and the node at which an error is."""

    def __init__(
        self, template: Template, name: str, data: object, depth: int, budget: Budget | None
    ) -> None:
        self._template, self._name, self._data, self._depth = template, name, data, depth
        self._budget = budget
        self._variables: list[tuple[str, object]] = [("$", data)]
        self._at: object = None
        self._out: list[str] = []

    def whole(self) -> str:
        body = self._template.bodies.get(self._name, ())
        self._walk(self._data, body)
        return "".join(self._out)

    def wrong(self, reason: str) -> TemplateError:
        text = self._template.text[: getattr(self._at, "at", 0)]
        column = len(text[text.rfind("\n") + 1 :].encode("utf-8", "replace"))
        where = f"{self._template.name}:{1 + text.count(chr(10))}:{column}"
        return TemplateError(
            f"template: {where}: executing {quoted(self._name)} at <{self._at}>: {reason}"
        )

    def _write(self, text: str) -> None:
        if self._budget is not None:
            self._budget.write(len(text))
        self._out.append(text)

    def _looked(self, *values: object) -> None:
        """Before all of a value is gone through, and behind what made it."""
        if self._budget is not None:
            for value in values:
                self._budget.look(value)

    def _walk(self, dot: object, body: Body) -> None:
        for node in body:
            if self._budget is not None:
                self._budget.step()
            self._node(dot, node)

    def _node(self, dot: object, node: Node) -> None:
        if isinstance(node, Text):
            self._write(node.text)
        elif isinstance(node, Action):
            value = self._pipeline(dot, node.pipeline)
            if not node.pipeline.declared:
                self._looked(value)
                text = NO_VALUE if value is None else shown(value)
                self._write(text.removeprefix("&") if isinstance(value, Record) else text)
        elif isinstance(node, Call):
            self._call_template(dot, node)
        elif isinstance(node, Jump):
            raise _Break if node.kind == "break" else _Continue
        elif node.kind == "range":
            self._range(dot, node)
        else:
            self._branch(dot, node)

    def _branch(self, dot: object, node: Branch) -> None:
        mark = len(self._variables)
        value = self._pipeline(dot, node.pipeline)
        if truth(value):
            self._walk(value if node.kind == "with" else dot, node.body)
        elif node.otherwise is not None:
            self._walk(dot, node.otherwise)
        del self._variables[mark:]

    def _range(self, dot: object, node: Branch) -> None:
        mark = len(self._variables)
        value = self._pipeline(dot, node.pipeline)
        inner = len(self._variables)
        none = True
        try:
            for key, element in self._elements(value, node.pipeline):
                none = False
                self._looked(key)
                self._declare(node.pipeline, key, element)
                try:
                    self._walk(element, node.body)
                except _Continue:
                    pass
                del self._variables[inner:]
        except _Break:
            pass
        del self._variables[mark:]
        if none and node.otherwise is not None:
            self._walk(dot, node.otherwise)

    def _elements(self, value: object, pipeline: Pipeline) -> Iterable[tuple[object, object]]:
        if value is None:
            return []
        if isinstance(value, Mapping):
            return [(key, value[key]) for key in sorted(value)]
        if isinstance(value, list | tuple):
            return list(enumerate(value))
        if isinstance(value, int) and not isinstance(value, bool):
            if len(pipeline.declared) > 1:
                raise self.wrong(f"can't use {value} to iterate over more than one variable")
            if value > COUNT_MAX:
                raise self.wrong(f"range over {value} is too long")
            return ((None, at) for at in range(value))
        raise self.wrong(f"range can't iterate over {shown(value)}")

    def _declare(self, pipeline: Pipeline, key: object, element: object) -> None:
        """The variables of a `range`: of one the element, of two the key and the element."""
        names = [one.name for one in pipeline.declared]
        values = (element,) if len(names) == 1 else (key, element)
        for at, (name, value) in enumerate(zip(names, values, strict=False)):
            if pipeline.assigns:
                self._set(name, value)
            else:
                self._variables[at - len(names)] = (name, value)

    def _call_template(self, dot: object, node: Call) -> None:
        self._at = node
        if node.name not in self._template.bodies:
            raise self.wrong(f"template {quoted(node.name)} not defined")
        if self._depth == CALLS_MAX:
            raise self.wrong(f"exceeded maximum template depth ({CALLS_MAX})")
        data = self._pipeline(dot, node.pipeline) if node.pipeline else None
        inner = _Run(self._template, node.name, data, self._depth + 1, self._budget)
        self._write(inner.whole())

    def _pipeline(self, dot: object, pipeline: Pipeline) -> object:
        self._at = pipeline
        value: object = MISSING
        for command in pipeline.commands:
            value = self._command(dot, command, value)
        for variable in pipeline.declared:
            if pipeline.assigns:
                self._set(variable.name, value)
            else:
                self._variables.append((variable.name, value))
        return value

    def _set(self, name: str, value: object) -> None:
        for at in range(len(self._variables) - 1, -1, -1):
            if self._variables[at][0] == name:
                self._variables[at] = (name, value)
                return
        raise self.wrong(f"undefined variable: {name}")

    def _value_of(self, name: str) -> object:
        for known, value in reversed(self._variables):
            if known == name:
                return value
        raise self.wrong(f"undefined variable: {name}")

    def _command(self, dot: object, command: Command, final: object) -> object:
        first, arguments = command.words[0], command.words[1:]
        if isinstance(first, Field | Chain):
            return self._chain(dot, first, arguments, final)
        if isinstance(first, Function):
            return self._function(dot, first, command, arguments, final)
        if isinstance(first, Variable) and first.names:
            return self._chain(dot, first, arguments, final)
        if not isinstance(first, Pipeline):
            self._at = first
        if arguments or final is not MISSING:
            raise self.wrong(f"can't give argument to non-function {first}")
        if isinstance(first, Literal) and first.kind == "nil":
            raise self.wrong("nil is not a command")
        return self._operand(dot, first)

    def _operand(self, dot: object, node: Operand) -> object:
        """Without arguments."""
        if isinstance(node, Pipeline):
            return self._pipeline(dot, node)
        self._at = node
        if isinstance(node, Dot):
            return dot
        if isinstance(node, Literal):
            return self._constant(node)
        if isinstance(node, Function):
            return self._function(dot, node, node, (), MISSING)
        if isinstance(node, Variable) and not node.names:
            return self._value_of(node.name)
        return self._chain(dot, node, (), MISSING)

    def _constant(self, node: Literal) -> object:
        value = node.value
        if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
            raise self.wrong(f"{node} overflows int")
        return value

    def _chain(
        self,
        dot: object,
        node: Field | Variable | Chain,
        arguments: Sequence[Operand],
        final: object,
    ) -> object:
        self._at = node
        value = dot
        if isinstance(node, Variable):
            value = self._value_of(node.name)
        elif isinstance(node, Chain):
            value = self._operand(dot, node.of)
        for name in node.names[:-1]:
            value = self._field(dot, node, name, value, (), MISSING)
        return self._field(dot, node, node.names[-1], value, arguments, final)

    def _field(
        self,
        dot: object,
        node: Operand,
        name: str,
        of: object,
        arguments: Sequence[Operand],
        final: object,
    ) -> object:
        if of is None:
            return None
        given = bool(arguments) or final is not MISSING
        if isinstance(of, Record):
            method = of.methods.get(name)
            if method is not None:
                return self._called(dot, method, node, name, arguments, final)
            if name in of.fields:
                if given:
                    raise self.wrong(f"{name} has arguments but cannot be invoked as function")
                return of.fields[name]
        elif isinstance(of, Mapping):
            if given:
                raise self.wrong(f"{name} is not a method but has arguments")
            return of.get(name)
        raise self.wrong(f"can't evaluate field {name} in type {type_of(of)}")

    def _function(
        self,
        dot: object,
        node: Function,
        whole: Command | Function,
        arguments: Sequence[Operand],
        final: object,
    ) -> object:
        self._at = node
        callee = self._template.functions[node.name]
        if node.name in (AND, OR):
            return self._decided(dot, node.name, arguments, final)
        return self._called(dot, callee, whole, node.name, arguments, final)

    def _counted(self, callee: Callee, name: str, given: int, final: object) -> None:
        """Fails unless so many arguments can be."""
        count, fixed = given + (final is not MISSING), len(callee.takes)
        if callee.rest:
            if count < fixed:
                raise self.wrong(
                    f"wrong number of args for {name}: want at least {fixed} got {given}"
                )
        elif count != fixed:
            raise self.wrong(f"wrong number of args for {name}: want {fixed} got {count}")

    def _decided(
        self, dot: object, name: str, arguments: Sequence[Operand], final: object
    ) -> object:
        self._counted(BUILTINS[name], name, len(arguments), final)
        value: object = None
        for argument in arguments:
            value = self._argument(dot, "any", argument)
            if truth(value) == (name == OR):
                return value
        return value if final is MISSING else final

    def _called(
        self,
        dot: object,
        callee: Callee,
        node: Operand | Command,
        name: str,
        arguments: Sequence[Operand],
        final: object,
    ) -> object:
        self._counted(callee, name, len(arguments), final)
        kinds = [*callee.takes, *[callee.rest] * (len(arguments) + 1)]
        values = [
            self._argument(dot, kind, argument)
            for kind, argument in zip(kinds, arguments, strict=False)
        ]
        if final is not MISSING:
            values.append(self._checked(final, kinds[len(arguments)]))
        if callee is BUILTINS[CALL]:  # of values none is a function
            self._at = node
            what = f"non-function {arguments[0] if arguments else ''} of type {type_of(values[0])}"
            raise self.wrong(f"error calling {name}: {what}")
        self._looked(*values)
        try:
            made = callee.run(*values)
        except ValueError as error:
            self._at = node
            raise self.wrong(f"error calling {name}: {error}") from None
        self._looked(made)
        return made

    def _argument(self, dot: object, kind: str, node: Operand) -> object:
        self._at = node
        if not isinstance(node, Literal):
            return self._checked(self._operand(dot, node), kind)
        if node.kind == "nil":
            if kind != "any":
                raise self.wrong(f"cannot assign nil to {kind}")
            return None
        value = self._constant(node)
        if kind == "float64" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        natural = kind == "uint" and type_of(value) == "int" and not shown(value).startswith("-")
        if kind not in ("any", type_of(value)) and not natural:
            raise self.wrong(f"expected {_WANTED.get(kind, kind)}; found {node}")
        return value

    def _checked(self, value: object, kind: str) -> object:
        if kind in ("any", type_of(value)):
            return value
        if value is None:
            raise self.wrong(f"invalid value; expected {kind}")
        raise self.wrong(f"wrong type for value; expected {kind}; got {type_of(value)}")
