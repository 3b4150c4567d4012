"""A consumer of a stream that is here, without a replica of its own here.

That is so while members change, and until a replica that only memory held is made again. What such
a consumer has consumed is not known here: a stream that lets go of what was consumed keeps all
that is for it.
"""

from collections.abc import Sequence

from jsctl.broker.jetstream.consumers.consumer import filters_of
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from jsctl.broker.subject.matching import Filters
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AbsentConsumer:
    """Implements `replica_context.ConsumerWatcher`."""

    filters: Filters

    @staticmethod
    def of(assignment: ConsumerAssignment) -> "AbsentConsumer":
        """The consumer of an assignment."""
        patterns = tuple(one.encode() for one in filters_of(assignment.config))
        return AbsentConsumer(Filters(patterns))

    @property
    def leading(self) -> bool:
        """It is led elsewhere, if at all."""
        return False

    @property
    def takes_all(self) -> bool:
        """Whether every subject of the stream is for it."""
        return self.filters.is_all

    @property
    def concerns(self) -> Sequence[bytes] | None:
        """Patterns of what is for it; None: it is to be asked."""
        filters = self.filters
        return None if filters.is_all or filters.has_long else filters.patterns

    def needs(self, seq: int, subject: bytes) -> bool:
        """It may."""
        return self.interested(subject)

    def interested(self, subject: bytes) -> bool:
        """Whether messages on a subject are for it."""
        return self.filters.match(subject)
