"""Atomic batches of one stream that are not complete (NATS ADR-50).

Messages name their batch and their place in it by headers. They wait here, at the stream's leader,
until the last one commits them; then all of them are judged and become one entry of the log. A
batch is given up when one of its messages is missing or nothing came for a while. It dies with the
leadership: what comes next of it is refused, and its publisher begins anew.

Which of several mistakes is named, and after which of them operators are told, is as in the real
server.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from jsctl.api.errors import ApiError, api_error
from jsctl.broker.jetstream import api_levels
from jsctl.broker.jetstream.batches.words import Abandoned, BatchEnd
from jsctl.broker.jetstream.streams import publish_headers as known
from jsctl.broker.jetstream.streams.publish_room import (
    BATCH_BYTES_MAX,
    STAGED_BYTES_MAX,
    PublishRoom,
)
from jsctl.broker.protocol import headers as blocks
from jsctl.dataclass import dataclass

ID_BYTES_MAX = 64
MEMBER_BYTES = 200
"""What a waiting message takes besides its content, about."""
COMMIT = b"1"
COMMIT_WITHOUT = b"eob"
"""Commits what came before, and is not stored itself."""


class Member(NamedTuple):
    """One message of a batch."""

    subject: bytes
    headers: bytes
    payload: bytes


@dataclass(slots=True)
class AtomicBatch:
    """What came of a batch so far, in order."""

    id: bytes
    active_ns: int
    members: list[Member] = field(default_factory=list)
    bytes: int = 0


class AtomicBatches:
    """See the module. `ends` is told which batches were given up, and why."""

    def __init__(self, room: PublishRoom, ends: list[BatchEnd]) -> None:
        self._room = room
        self._ends = ends
        self._open: dict[bytes, AtomicBatch] = {}
        """In the order of their last messages."""

    def __len__(self) -> int:
        return len(self._open)

    def take(
        self, member: Member, fields: Mapping[bytes, bytes], now_ns: int
    ) -> AtomicBatch | ApiError | None:
        """Keep a message; the whole batch if that commits it, why not if it is refused."""
        name = fields[known.BATCH_ID]
        if len(name) > ID_BYTES_MAX:
            return api_error("JSAtomicPublishInvalidBatchIDErr")
        seq = known.parse_number(fields.get(known.BATCH_SEQUENCE, b""))
        if seq is None:
            return api_error("JSAtomicPublishMissingSeqErr")
        commit = fields.get(known.BATCH_COMMIT)
        self.expire(now_ns)
        batch = self._open.get(name)
        if batch is None:
            refused = self._refuse_new(seq, commit)
            if refused is not None:
                return refused
            batch = self._begin(name, now_ns)
        refused = self._refuse(batch, seq, commit, fields)
        if refused is None and commit != COMMIT_WITHOUT:
            refused = self._keep(batch, member, fields)
        if refused is not None:
            return refused
        # The last one that heard something is the last one to be given up.
        self._open[name] = self._open.pop(name)
        batch.active_ns = now_ns
        return None if commit is None else self._complete(batch, commit)

    def _refuse_new(self, seq: int, commit: bytes | None) -> ApiError | None:
        """Why a batch cannot begin with this message."""
        if seq == 1:
            has_room = self._room.has_atomic(len(self._open))
            return None if has_room else api_error("JSAtomicPublishTooManyInflight")
        return self._too_many(seq, commit) or api_error("JSAtomicPublishIncompleteBatchErr")

    def _too_many(self, seq: int, commit: bytes | None) -> ApiError | None:
        size, most = seq - (commit == COMMIT_WITHOUT), self._room.limits.messages_max
        return api_error("JSAtomicPublishTooLargeBatchErrF", size=most) if size > most else None

    def _begin(self, name: bytes, now_ns: int) -> AtomicBatch:
        batch = self._open[name] = AtomicBatch(name, now_ns)
        self._room.atomic += 1
        return batch

    def _refuse(
        self, batch: AtomicBatch, seq: int, commit: bytes | None, fields: Mapping[bytes, bytes]
    ) -> ApiError | None:
        """Why a batch ends with this message, and nothing of it is stored."""
        if commit not in (None, COMMIT, COMMIT_WITHOUT):
            self._forget(batch)
            return api_error("JSAtomicPublishInvalidBatchCommitErr")
        if api_levels.exceeded(fields.get(api_levels.REQUIRED_LEVEL)):
            return self._give_up(batch, Abandoned.UNSUPPORTED, "JSRequiredApiLevelErr")
        if seq != len(batch.members) + 1 or (seq == 1 and commit == COMMIT_WITHOUT):
            return self._give_up(batch, Abandoned.INCOMPLETE, "JSAtomicPublishIncompleteBatchErr")
        too_many = self._too_many(seq, commit)
        if too_many is not None:
            self._give_up(batch, Abandoned.LARGE)
        return too_many

    def _keep(
        self, batch: AtomicBatch, member: Member, fields: Mapping[bytes, bytes]
    ) -> ApiError | None:
        subject, headers, payload = member
        size = MEMBER_BYTES + len(subject) + len(headers) + len(payload)
        if batch.bytes + size > BATCH_BYTES_MAX:
            self._give_up(batch, Abandoned.LARGE)
            return api_error("JSAtomicPublishTooLargeBatchErrF", size=f"{BATCH_BYTES_MAX} bytes")
        if self._room.staged_bytes + size > STAGED_BYTES_MAX:
            return self._give_up(batch, Abandoned.INCOMPLETE, "JSAtomicPublishTooManyInflight")
        if fields.get(api_levels.REQUIRED_LEVEL):
            member = Member(subject, blocks.remove(headers, api_levels.REQUIRED_LEVEL), payload)
        batch.members.append(member)
        batch.bytes += size
        self._room.staged_bytes += size
        return None

    def _complete(self, batch: AtomicBatch, commit: bytes) -> AtomicBatch:
        self._forget(batch)
        if commit == COMMIT_WITHOUT:
            subject, headers, payload = batch.members[-1]
            headers = blocks.append(headers, known.BATCH_COMMIT, COMMIT)
            batch.members[-1] = Member(subject, headers, payload)
        return batch

    def _give_up(self, batch: AtomicBatch, why: Abandoned, error: str = "") -> ApiError | None:
        self._forget(batch)
        self._ends.append(BatchEnd(batch.id, why))
        return api_error(error) if error else None

    def _forget(self, batch: AtomicBatch) -> None:
        del self._open[batch.id]
        self._room.atomic -= 1
        self._room.staged_bytes -= batch.bytes

    # Ends

    def next_due_ns(self) -> int | None:
        """When the first of them will have waited for too long."""
        for batch in self._open.values():
            return batch.active_ns + self._room.limits.timeout_ns
        return None

    def expire(self, now_ns: int) -> None:
        """Give up those of which nothing came for too long."""
        limit_ns = now_ns - self._room.limits.timeout_ns
        while self._open:
            oldest = next(iter(self._open.values()))
            if oldest.active_ns > limit_ns:
                return
            self._give_up(oldest, Abandoned.TIMEOUT)

    def end(self) -> None:
        """Another server leads, or the stream takes no batches any more."""
        for batch in list(self._open.values()):
            self._forget(batch)
