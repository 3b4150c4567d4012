"""Streams that take from other streams: in the end they have each message, once and in order.

That none comes twice or out of order is looked at as entries are committed, by their books; here is
what has to be there when all is well again.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.sourcing.names import stream_identity
from tests.simulation.machine import ACCOUNT
from tests.simulation.stream_checks import Books

if TYPE_CHECKING:
    from tests.simulation.run import Simulation

MIRROR, AGGREGATE = "MIRROR", "AGGREGATE"


class Copies:
    """A mirror of the first stream, and a stream that has all as its sources."""

    def __init__(self, of: "Simulation") -> None:
        self._of = of
        self._origins = [f"S{number}" for number in range(len(of.configs))]
        replicas, storage, _ = of.plan.streams[-1]
        shared = {"subjects": [], "num_replicas": replicas, "storage": storage}
        self._configs: dict[str, dict[str, Any]] = {
            MIRROR: {**shared, "name": MIRROR, "mirror": {"name": self._origins[0]}},
            AGGREGATE: {
                **shared,
                "name": AGGREGATE,
                "sources": [{"name": name} for name in self._origins],
            },
        }

    def create(self) -> None:
        """Have them made; they may be there."""
        for name, config in self._configs.items():
            self._of.operator.ask(f"STREAM.CREATE.{name}", config, tries=20, until="already in use")

    def reasons(self, meta: Meta) -> Iterator[str]:
        """What they do not have yet."""
        for name, origins in ((MIRROR, self._origins[:1]), (AGGREGATE, self._origins)):
            copy = self._books(meta, name)
            for origin in origins:
                found = meta.stream(ACCOUNT, origin)
                books = self._books(meta, origin)
                if copy is None or found is None or books is None:
                    continue
                taken = copy.taken.get((origin, stream_identity(found.created_ns)), {})
                if name == MIRROR:
                    taken = copy.values
                missing = [seq for seq in books.model.rows if seq not in taken]
                if missing:
                    yield f"{name} lacks {missing[:5]} of {origin}"
                wrong = [seq for seq in taken if books.values.get(seq, b"") != taken[seq]]
                if wrong:
                    yield f"{name} has other messages {wrong[:5]} than {origin}"

    def _books(self, meta: Meta, name: str) -> Books | None:
        """None for a stream that lost what was acknowledged, or is not there."""
        made = meta.stream(ACCOUNT, name)
        known = None if made is None else self._of.checker.history(made.group.name)
        return None if known is None or known.excused else known.books
