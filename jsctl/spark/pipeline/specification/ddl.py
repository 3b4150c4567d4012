"""Schemas as Spark writes them, `id BIGINT, tags ARRAY<STRING>`, read without Spark.

Wanted twice: to find a wrong schema before a JVM is started, and as the Arrow type that payloads
are decoded to.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

DEPTH_MAX = 32
DECIMAL_DIGITS_MAX = 38
_TOKEN = re.compile(r"\s*(`[^`]+`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:])")
_SIMPLE: Mapping[str, str] = {
    "STRING": "string",
    "BOOLEAN": "bool",
    "TINYINT": "int8",
    "BYTE": "int8",
    "SMALLINT": "int16",
    "SHORT": "int16",
    "INT": "int32",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "LONG": "int64",
    "FLOAT": "float32",
    "REAL": "float32",
    "DOUBLE": "float64",
    "BINARY": "binary",
    "DATE": "date32",
    "TIMESTAMP": "timestamp",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type: `name` in capitals; `inner` has the element, key and value, or the fields.

    `digits` is the precision and scale of a DECIMAL.
    """

    name: str
    inner: "tuple[Field, ...]" = ()
    digits: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a part of a type."""

    name: str
    type: Type
    nullable: bool = True


def parse_schema(text: str) -> tuple[Field, ...]:
    """The columns of a schema.

    Raises ValueError that says what was expected and where.
    """
    reader = _Reader(text)
    fields = reader.fields("")
    if reader.peek:
        raise ValueError(f"expected a comma before '{reader.peek}'")
    names = [field.name.lower() for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"column {twice[0]} stands twice")
    return fields


class _Reader:
    """Tokens of a schema, one ahead."""

    def __init__(self, text: str) -> None:
        self._tokens = []
        at = 0
        text = text.strip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"cannot read '{text[at : at + 20]}'")
            self._tokens.append(match[1])
            at = match.end()
        self._tokens.reverse()
        self._depth = 0

    @property
    def peek(self) -> str:
        """The next token, empty at the end."""
        return self._tokens[-1] if self._tokens else ""

    def take(self, expected: str = "") -> str:
        """The next token; ValueError unless it is the expected one."""
        token = self.peek
        if not token or (expected and token != expected):
            raise ValueError(f"expected '{expected or 'more'}', got '{token or 'the end'}'")
        return self._tokens.pop()

    def fields(self, end: str) -> tuple[Field, ...]:
        """Fields up to a closing mark, which is not taken."""
        found = [self._field()]
        while self.peek == ",":
            self.take()
            found.append(self._field())
        if end and self.peek != end:
            raise ValueError(f"expected '{end}', got '{self.peek or 'the end'}'")
        return tuple(found)

    def _field(self) -> Field:
        name = self.take()
        if not (name.startswith("`") or name.isidentifier()):
            raise ValueError(f"expected a column name, got '{name}'")
        name = name.strip("`")
        if self.peek == ":":
            self.take()
        kind = self._type(name)
        nullable = True
        if self.peek.upper() == "NOT":
            self.take()
            if self.take().upper() != "NULL":
                raise ValueError(f"column {name}: expected NULL after NOT")
            nullable = False
        if self.peek.upper() == "COMMENT":
            self.take()
            self.take()
        return Field(name, kind, nullable)

    def _type(self, column: str) -> Type:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ValueError(f"column {column}: types are nested deeper than {DEPTH_MAX}")
        try:
            name = self.take().upper()
        except ValueError:
            raise ValueError(f"column {column} has no type") from None
        found = self._nested(name, column) if name in _NESTED else self._plain(name, column)
        self._depth -= 1
        return found

    def _nested(self, name: str, column: str) -> Type:
        self.take("<")
        if name == "STRUCT":
            inner = self.fields(">")
        else:
            first = Field("element" if name == "ARRAY" else "key", self._type(column), True)
            inner = (first,)
            if name == "MAP":
                self.take(",")
                inner = (first, Field("value", self._type(column), True))
        self.take(">")
        return Type(name, inner)

    def _plain(self, name: str, column: str) -> Type:
        if name in ("DECIMAL", "DEC", "NUMERIC"):
            return Type("DECIMAL", digits=self._digits(column))
        if name not in _SIMPLE:
            known = ", ".join(sorted([*_SIMPLE, "DECIMAL", *_NESTED]))
            raise ValueError(f"column {column}: unknown type {name}; known are {known}")
        return Type(name)

    def _digits(self, column: str) -> tuple[int, int]:
        if self.peek != "(":
            return (10, 0)
        self.take()
        precision, scale = self.take(), "0"
        if self.peek == ",":
            self.take()
            scale = self.take()
        self.take(")")
        if not (precision + scale).isdigit() or not 1 <= int(precision) <= DECIMAL_DIGITS_MAX:
            raise ValueError(f"column {column}: DECIMAL has 1 to {DECIMAL_DIGITS_MAX} digits")
        return int(precision), int(scale)


_NESTED = ("ARRAY", "MAP", "STRUCT")


def arrow_struct(fields: tuple[Field, ...]) -> "pa.StructType":
    """The Arrow type of a row with these columns; timestamps are microseconds in UTC."""
    import pyarrow as pa

    return pa.struct([pa.field(one.name, _arrow(one.type)) for one in fields])


def _arrow(kind: Type) -> "pa.DataType":
    import pyarrow as pa

    if kind.name == "ARRAY":
        return pa.list_(_arrow(kind.inner[0].type))
    if kind.name == "MAP":
        return pa.map_(_arrow(kind.inner[0].type), _arrow(kind.inner[1].type))
    if kind.name == "STRUCT":
        return arrow_struct(kind.inner)
    if kind.name == "DECIMAL":
        return pa.decimal128(*kind.digits)
    if kind.name == "TIMESTAMP":
        return pa.timestamp("us", tz="UTC")
    made: pa.DataType = getattr(pa, {"bool": "bool_"}.get(_SIMPLE[kind.name], _SIMPLE[kind.name]))()
    return made


def ddl_of(fields: tuple[Field, ...]) -> str:
    """The schema as text again."""
    return ", ".join(f"`{one.name}` {_text(one.type)}" for one in fields)


def _text(kind: Type) -> str:
    if kind.name == "STRUCT":
        return f"STRUCT<{', '.join(f'`{one.name}`: {_text(one.type)}' for one in kind.inner)}>"
    if kind.inner:
        return f"{kind.name}<{', '.join(_text(one.type) for one in kind.inner)}>"
    if kind.name == "DECIMAL":
        return f"DECIMAL({kind.digits[0]}, {kind.digits[1]})"
    return kind.name
