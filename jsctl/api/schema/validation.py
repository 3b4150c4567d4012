"""What is wrong with a document, by a JSON schema of draft 7: the keywords that ours use.

Messages are those of the validator in the `nats` tool, in the order of the document's paths.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from jsctl.api.times import parse_time

Schema = Mapping[str, object]
Violation = tuple[str, str]
"""Where, as a JSON pointer, and what."""


def violations(document: object, schema: Schema) -> list[str]:
    """What is wrong, a line each; empty for a document that is as it should be."""
    found = dict.fromkeys(_violations(document, schema, ""))
    return [f"{place}: {what}" if place else what for place, what in sorted(found)]


def _violations(value: object, schema: Schema, place: str) -> Iterator[Violation]:
    wrong = list(_type(value, schema["type"], place)) if "type" in schema else []
    if wrong:
        yield from wrong
        return
    for keyword, wanted in schema.items():
        check = _CHECKS.get(keyword)
        if check is not None:
            yield from check(value, wanted, place)
    yield from _object(value, schema, place)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _type(value: object, wanted: object, place: str) -> Iterator[Violation]:
    kinds = [wanted] if isinstance(wanted, str) else wanted
    assert isinstance(kinds, list)
    found = _kind(value)
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if found not in kinds and not ("integer" in kinds and found == "number" and whole):
        yield place, f"expected {' or '.join(kinds)}, but got {found}"


def _required(value: object, wanted: object, place: str) -> Iterator[Violation]:
    assert isinstance(wanted, list)
    if isinstance(value, dict):
        missing = [f"'{name}'" for name in wanted if name not in value]
        if missing:
            yield place, f"missing properties: {', '.join(missing)}"


def _object(value: object, schema: Schema, place: str) -> Iterator[Violation]:
    """The properties of an object, named, by pattern, and others."""
    if not isinstance(value, dict):
        return
    named, patterns = (_mapping(schema.get(key)) for key in ("properties", "patternProperties"))
    strange: list[str] = []
    more = schema.get("additionalProperties", True)
    for name, part in value.items():
        inner = f"{place}/{name.replace('~', '~0').replace('/', '~1')}"
        fitting = [one for pattern, one in patterns.items() if re.search(pattern, name)]
        fitting += [named[name]] if name in named else []
        for one in fitting or ([more] if isinstance(more, Mapping) else []):
            yield from _violations(part, _mapping(one), inner)
        if not fitting and more is False:
            strange.append(f"'{name}'")
    if strange:
        yield place, f"additionalProperties {', '.join(sorted(strange))} not allowed"


def _mapping(value: object) -> Schema:
    return value if isinstance(value, Mapping) else {}


def _items(value: object, wanted: object, place: str) -> Iterator[Violation]:
    if isinstance(value, list):
        for at, part in enumerate(value):
            yield from _violations(part, _mapping(wanted), f"{place}/{at}")


def _minimum(value: object, wanted: object, place: str) -> Iterator[Violation]:
    assert isinstance(wanted, int | float)
    if _kind(value) == "number" and isinstance(value, int | float) and value < wanted:
        yield place, f"must be >= {wanted} but found {value}"


def _maximum(value: object, wanted: object, place: str) -> Iterator[Violation]:
    assert isinstance(wanted, int | float)
    if _kind(value) == "number" and isinstance(value, int | float) and value > wanted:
        yield place, f"must be <= {wanted} but found {value}"


def _min_length(value: object, wanted: object, place: str) -> Iterator[Violation]:
    assert isinstance(wanted, int)
    if isinstance(value, str) and len(value) < wanted:
        yield place, f"length must be >= {wanted}, but got {len(value)}"


def _max_length(value: object, wanted: object, place: str) -> Iterator[Violation]:
    assert isinstance(wanted, int)
    if isinstance(value, str) and len(value) > wanted:
        yield place, f"length must be <= {wanted}, but got {len(value)}"


def _pattern(value: object, wanted: object, place: str) -> Iterator[Violation]:
    assert isinstance(wanted, str)
    if isinstance(value, str) and not re.search(wanted, value):
        yield place, f"does not match pattern '{wanted}'"


def _format(value: object, wanted: object, place: str) -> Iterator[Violation]:
    if wanted == "date-time" and isinstance(value, str):
        try:
            parse_time(value)
        except ValueError:
            yield place, f"'{value}' is not valid 'date-time'"


def _enum(value: object, wanted: object, place: str) -> Iterator[Violation]:
    assert isinstance(wanted, list)
    if not any(_same(value, one) for one in wanted):
        words = ", ".join(map(json.dumps, wanted))
        yield place, f"value must be {'one of ' if len(wanted) > 1 else ''}{words}"


def _const(value: object, wanted: object, place: str) -> Iterator[Violation]:
    if not _same(value, wanted):
        yield place, f"value must be {json.dumps(wanted)}"


def _same(one: object, other: object) -> bool:
    """True is no 1 here."""
    return _kind(one) == _kind(other) and one == other


def _all_of(value: object, wanted: object, place: str) -> Iterator[Violation]:
    for schema in _schemas(wanted):
        yield from _violations(value, schema, place)


def _one_of(value: object, wanted: object, place: str) -> Iterator[Violation]:
    """When none fits, what each of them minds."""
    found = [list(_violations(value, schema, place)) for schema in _schemas(wanted)]
    fitting = [at for at, wrong in enumerate(found) if not wrong]
    if len(fitting) > 1:
        yield place, f"valid against schemas at indexes {fitting[0]} and {fitting[1]}"
    elif not fitting:
        for wrong in found:
            yield from wrong


def _not(value: object, wanted: object, place: str) -> Iterator[Violation]:
    if not list(_violations(value, _mapping(wanted), place)):
        yield place, "not failed"


def _schemas(wanted: object) -> Sequence[Schema]:
    assert isinstance(wanted, list)
    return wanted


_CHECKS: Mapping[str, Callable[[object, object, str], Iterator[Violation]]] = {
    "required": _required,
    "items": _items,
    "minimum": _minimum,
    "maximum": _maximum,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "enum": _enum,
    "const": _const,
    "allOf": _all_of,
    "oneOf": _one_of,
    "not": _not,
}
