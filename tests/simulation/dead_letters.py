"""A stream for what consumers give up: each letter once, and none that the log knows nothing of."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jsctl.broker.jetstream.consumers.consumer import DEAD_LETTERS_KEY
from jsctl.broker.jetstream.meta.state import Meta
from tests.simulation.machine import ACCOUNT
from tests.simulation.violation import Violation
from tests.simulation.world import MS

if TYPE_CHECKING:
    from tests.simulation.run import Simulation

DEAD = "DEAD"
PREFIX = "dead"
METADATA = {DEAD_LETTERS_KEY: PREFIX}


class DeadLetters:
    """See the module."""

    def __init__(self, of: "Simulation") -> None:
        self._of = of
        self._config: dict[str, Any] = {
            "name": DEAD,
            "subjects": [f"{PREFIX}.>"],
            "num_replicas": 3,
            # Shorter than it takes for another server to lead.
            "duplicate_window": 100 * MS,
        }

    def create(self) -> None:
        """Have it made; it may be there. In every second run that is late, and letters wait."""
        if self._of.plan.seed % 2 and not self._of.faults.over:
            return
        self._of.operator.ask(
            f"STREAM.CREATE.{DEAD}", self._config, tries=20, until="already in use"
        )

    def reasons(self, meta: Meta) -> Iterator[str]:
        """What is not stored yet. Raises Violation for letters that are of nothing."""
        made = meta.stream(ACCOUNT, DEAD)
        known = None if made is None else self._of.checker.history(made.group.name)
        if known is None or known.books is None:
            yield f"{DEAD} is not there"
            return
        buried: set[bytes] = set()
        whole = not known.excused
        for history in self._of.checker.groups.values():
            if history.consumer is None:
                continue
            whole = whole and not history.excused
            buried |= history.consumer.buried
            if history.consumer.dead and not history.excused and not known.excused:
                yield f"{history.consumer.name} has {list(history.consumer.dead)[:3]} to be stored"
        unknown = sorted(known.books.letters - buried)
        if whole and unknown:
            raise Violation(f"{DEAD} has {unknown[:3]}, which nobody gave up")
