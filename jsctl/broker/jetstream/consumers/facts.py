"""Facts that a leading consumer reports: advisories, and what a turn decided."""

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import Enum

from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass

Interest = Callable[[bytes], bool]
"""Whether anybody listens on a subject, in the consumer's account."""


class AdvisoryKind(Enum):
    """What happened to a message or a group; the value is the advisory's subject."""

    MAX_DELIVERIES = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"
    NAKED = "$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED"
    TERMINATED = "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED"
    ACK_METRIC = "$JS.EVENT.METRIC.CONSUMER.ACK"
    PINNED = "$JS.EVENT.ADVISORY.CONSUMER.PINNED"
    UNPINNED = "$JS.EVENT.ADVISORY.CONSUMER.UNPINNED"


@dataclass(frozen=True, slots=True)
class Advisory:
    """One thing worth telling; which fields are set depends on the kind."""

    kind: AdvisoryKind
    consumer_seq: int = 0
    stream_seq: int = 0
    deliveries: int = 0
    reason: str = ""
    ack_time_ns: int = 0
    group: str = ""
    pin: str = ""


@dataclass(slots=True)
class ConsumerTurn:
    """What a leading consumer wants done after a turn."""

    entry: bytes | None = None
    """To be proposed; then `ConsumerLeader.committed(ticket)` is called once it is applied."""
    ticket: int = 0
    publish: list[OutgoingMessage] = field(default_factory=list)
    """To be published now, in order."""
    advisories: list[Advisory] = field(default_factory=list)
    letters: Sequence[OutgoingMessage] = ()
    """Dead letters, to be published now."""
    next_due_ns: int | None = None
    """Wants a turn at this time even if nothing happens."""
    again: bool = False
    """There is more to do at once: the batch was bounded."""
    inactive: bool = False
    """Nobody used the consumer for its inactive threshold: it is to be deleted."""
    damaged: tuple[int, int] | None = None
    """Stream sequences that cannot be read here, and are waited for."""
    passed_over: SeqSet = field(default_factory=SeqSet)
    """Stream sequences that nobody can read any more, and that are not delivered."""
