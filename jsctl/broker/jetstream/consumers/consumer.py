"""A consumer as its group replicates it: the config, and where it stands.

Implements `ports.StateMachine`. Every replica has one; the leader's `ConsumerLeader` works on
a copy that runs ahead. The stream's leader asks it what still needs a message.
"""

import struct
from collections.abc import Iterable

from jsctl.api.codec import dumps, loads
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.times import parse_time
from jsctl.api.words import AckPolicy
from jsctl.broker.jetstream.config_texts import CONSUMERS
from jsctl.broker.jetstream.consumers.entries import (
    ConsumerEntryKind,
    apply_progress,
    decode_reset,
    encode_config,
    progress_epoch,
)
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.subject.matching import Filters

_SNAPSHOT = struct.Struct("<BIII")
_VERSION = 1
DEAD_LETTERS_KEY = "jsctl.dead_letter_subject"
"""Of the metadata."""


def filters_of(config: ConsumerConfig) -> tuple[str, ...]:
    """The filter subjects of a config, from whichever field has them."""
    return (config.filter_subject,) if config.filter_subject else config.filter_subjects


def config_entry(config: ConsumerConfig) -> bytes:
    """A CONFIG entry that replicas apply."""
    return encode_config(CONSUMERS.text(config))


class Consumer:
    """The replicated state machine. `acks_watched`: keep what `take_acked` gives (streams
    that remove what was consumed)."""

    __slots__ = (
        "config",
        "config_revision",
        "created_ns",
        "dead_letters_to",
        "epoch",
        "filters",
        "name",
        "pause_until_ns",
        "state",
        "stream",
    )

    def __init__(
        self,
        stream: str,
        name: str,
        config: ConsumerConfig,
        *,
        created_ns: int = 0,
        acks_watched: bool = False,
    ) -> None:
        self.stream = stream
        self.name = name
        self.created_ns = created_ns
        self.epoch = 0
        self.config_revision = 0
        """Counts applied changes of config, for those who derive things from it."""
        self.state = ConsumerState(
            acks_needed=config.ack_policy is not AckPolicy.NONE, acks_watched=acks_watched
        )
        self._configure(config)

    def _configure(self, config: ConsumerConfig) -> None:
        self.config = config
        self.filters = Filters(one.encode() for one in filters_of(config))
        self.pause_until_ns = parse_time(config.pause_until)
        self.dead_letters_to = config.metadata.get(DEAD_LETTERS_KEY, "").encode()
        """Below which subject messages go that are given up; empty: nowhere."""
        self.config_revision += 1

    def apply(self, index: int, entry: bytes) -> int:
        """Take one committed entry; the result of RESET is where it starts again."""
        kind = entry[0]
        if kind == ConsumerEntryKind.PROGRESS:
            if progress_epoch(entry) != self.epoch:
                return 0
            apply_progress(self.state, entry)
            return 1
        if kind == ConsumerEntryKind.CONFIG:
            self._configure(CONSUMERS.config(entry[1:]))
            return self.config_revision
        assert kind == ConsumerEntryKind.RESET, kind
        first = decode_reset(entry)
        self.epoch += 1
        self.state.reset(first)
        return first

    def snapshot(self) -> bytes:
        """Config and state after the last applied entry."""
        config = dumps(self.config)
        head = _SNAPSHOT.pack(_VERSION, self.epoch, self.config_revision, len(config))
        return head + config + self.state.encode()

    def restore(self, snapshot: bytes) -> None:
        """Replace config and state by a snapshot's."""
        version, epoch, revision, size = _SNAPSHOT.unpack_from(snapshot)
        assert version == _VERSION, version
        at = _SNAPSHOT.size
        self._configure(loads(ConsumerConfig, snapshot[at : at + size]))
        self.epoch, self.config_revision = epoch, revision
        self.state.decode(snapshot[at + size :])

    # What the stream's leader asks.

    def needs(self, seq: int, subject: bytes) -> bool:
        """Whether this consumer still has to see a message, or its ack is outstanding."""
        state = self.state
        if not state.started:
            return self.filters.match(subject)
        if seq in state.dead:
            return True
        if seq in state.redelivered:
            # Also if it is not delivered any more: nobody has acknowledged it.
            return self.filters.match(subject)
        if seq <= state.floor_stream or not self.filters.match(subject):
            return False
        if state.last_seqs and seq <= state.resume:
            return seq in state.pending or seq in state.last_seqs
        if seq > state.delivered_stream:
            return seq > state.resume and seq > state.skipped
        return seq in state.pending

    def take_acked(self) -> list[int]:
        """Sequences done with since the last call, if acks are watched."""
        acked, self.state.acked = self.state.acked, []
        return acked

    def acked_by(self, entries: Iterable[bytes]) -> list[int]:
        """What entries that follow would acknowledge; nothing is changed by them."""
        ahead = Consumer(self.stream, self.name, self.config, acks_watched=True)
        ahead.restore(self.snapshot())
        for entry in entries:
            ahead.apply(0, entry)
        return ahead.take_acked()
