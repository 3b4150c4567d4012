"""JSON schemas of the API's documents: by name, and what is wrong with a document by one.

`schemas.json` holds their structure, draft 7 without descriptions, a line each. What stands in
several of them is kept once, as a row of `shared`; `{"$shared": N}` stands for it.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jsctl.api.schema.validation import violations

__all__ = ["schema_names", "schema_of", "violations"]

DRAFT = "http://json-schema.org/draft-07/schema#"
HOME = "https://nats.io/schemas"
PREFIX = "io.nats."


@cache
def _held() -> tuple[list[object], Mapping[str, object]]:
    document = json.loads((Path(__file__).parent / "schemas.json").read_bytes())
    return document["shared"], document["schemas"]


def schema_names() -> tuple[str, ...]:
    """Of all schemas, in order."""
    return tuple(_held()[1])


def schema_of(name: str) -> dict[str, object] | None:
    """A schema, whole; None for a name that there is not."""
    shared, schemas = _held()
    if name not in schemas:
        return None
    body = _whole(schemas[name], shared)
    assert isinstance(body, dict)
    place = f"{HOME}/{name.removeprefix(PREFIX).replace('.', '/')}.json"
    return {"$schema": DRAFT, "$id": place, "title": name, **body}


def _whole(part: object, shared: list[object]) -> object:
    if isinstance(part, list):
        return [_whole(one, shared) for one in part]
    if not isinstance(part, dict):
        return part
    if "$shared" in part:
        return _whole(shared[part["$shared"]], shared)
    return {key: _whole(value, shared) for key, value in part.items()}
