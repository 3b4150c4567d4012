"""How far a streaming query is: per stream the next sequence, and which stream it was.

This is what Spark writes into the checkpoint, as JSON, and compares as text to see whether there
is something new: the same place must always give the same text. `base` is where the query began;
Spark asks for the beginning again after a crash before the first commit, and by then "latest"
would be somewhere else. `tasks` is the parallelism that ranges are cut for, so that a batch that
is replayed on another machine is cut the same way.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from jsctl.errors import JsctlError

VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A place in one stream: sequences below `next` are read. `created` tells streams apart."""

    next: int
    base: int
    created: str


@dataclass(frozen=True, slots=True)
class Offset:
    """A place in all streams. `initial` marks one that was not committed by any batch."""

    streams: Mapping[str, StreamOffset] = field(default_factory=dict)
    tasks: int = 1
    initial: bool = False

    def to_json(self) -> dict[str, object]:
        """A document with a fixed order of keys."""
        made: dict[str, object] = {"version": VERSION, "tasks": self.tasks}
        if self.initial:
            made["initial"] = True
        made["streams"] = {
            name: {"next": one.next, "base": one.base, "created": one.created}
            for name, one in sorted(self.streams.items())
        }
        return made

    @classmethod
    def of(cls, document: Mapping[str, object]) -> "Offset":
        """The offset of a document. Raises JsctlError for a checkpoint of something else."""
        streams = document.get("streams")
        if document.get("version") != VERSION or not isinstance(streams, dict):
            raise JsctlError(
                f"the checkpoint holds no offsets of this source: {json.dumps(document)[:200]}",
                hints=("use a new checkpoint location",),
            )
        return cls(
            {
                name: StreamOffset(int(one["next"]), int(one["base"]), str(one["created"]))
                for name, one in streams.items()
            },
            int(str(document.get("tasks", 1))),
            bool(document.get("initial")),
        )


def lag(source: Mapping[str, object]) -> dict[str, int]:
    """Sequences between what was read and what there is, per stream.

    `source` is one of the sources in a query's progress (`query.lastProgress["sources"]`).
    """
    read, latest = _decoded(source.get("endOffset")), _decoded(source.get("latestOffset"))
    return {
        name: max(one.next - (read.streams[name].next if name in read.streams else one.base), 0)
        for name, one in latest.streams.items()
    }


def _decoded(value: object) -> Offset:
    document = json.loads(value) if isinstance(value, str) else value
    return Offset.of(document) if isinstance(document, dict) else Offset()
