"""What a template is once it has been read. Every node has its place and the text it came from."""

from collections.abc import Sequence

from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text or a truth, as it was written; None is `nil`."""

    at: int
    written: str
    value: object
    kind: str

    def __str__(self) -> str:
        return self.written


@dataclass(frozen=True, slots=True)
class Dot:
    """What the template is run with here."""

    at: int

    def __str__(self) -> str:
        return "."


@dataclass(frozen=True, slots=True)
class Function:
    """The name of one."""

    at: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Field:
    """`.a.b` of the dot."""

    at: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$x.a`: a variable and fields of its value."""

    at: int
    name: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.name, *self.names))


@dataclass(frozen=True, slots=True)
class Chain:
    """Fields of what a pipeline or a function gives."""

    at: int
    of: "Operand"
    names: tuple[str, ...]

    def __str__(self) -> str:
        base = f"({self.of})" if isinstance(self.of, Pipeline) else str(self.of)
        return base + "".join(f".{name}" for name in self.names)


@dataclass(frozen=True, slots=True)
class Command:
    """A value, or a function and its arguments."""

    at: int
    words: "tuple[Operand, ...]"

    def __str__(self) -> str:
        return " ".join(
            f"({word})" if isinstance(word, Pipeline) else str(word) for word in self.words
        )


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each of which is the last argument of the next; `declared` get the value."""

    at: int
    commands: tuple[Command, ...]
    declared: tuple[Variable, ...] = ()
    assigns: bool = False

    def __str__(self) -> str:
        names = ", ".join(map(str, self.declared))
        sign = f"{names} {'=' if self.assigns else ':='} " if self.declared else ""
        return sign + " | ".join(map(str, self.commands))


Operand = Literal | Dot | Function | Field | Variable | Chain | Pipeline


@dataclass(frozen=True, slots=True)
class Text:
    """What stays as it is."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """A pipeline whose value is shown."""

    at: int
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Branch:
    """`if`, `with` and `range`."""

    at: int
    kind: str
    pipeline: Pipeline
    body: "Body"
    otherwise: "Body | None"


@dataclass(frozen=True, slots=True)
class Call:
    """Another template in this place."""

    at: int
    name: str
    pipeline: Pipeline | None

    def __str__(self) -> str:
        data = f" {self.pipeline}" if self.pipeline is not None else ""
        return f'{{{{template "{self.name}"{data}}}}}'


@dataclass(frozen=True, slots=True)
class Jump:
    """`break` and `continue`."""

    at: int
    kind: str


Node = Text | Action | Branch | Call | Jump
Body = Sequence[Node]
