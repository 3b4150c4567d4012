"""Fast batches of one stream (NATS ADR-50): messages that are stored as they come, and told of only
now and then.

Messages are judged and stored like others. A batch adds an order to them: each has a place in it,
and its publisher is told when one is missing. How often it hears of what is stored is decided here,
by how many publish so at the same time. The batch ends with a message that says so, with one that
is missing or refused where that is not allowed, or when nothing came for a while.

How far each batch is goes into the log with its messages (`streams.batch_marks`), so that whoever
leads next goes on with it. What was promised for entries in flight is kept entry by entry: when the
log does not take some, the batch stands where it stood before them, and its publisher finds out by
what it is told is missing.
"""

from collections import deque
from typing import NamedTuple

from jsctl.api.errors import ApiError, api_error
from jsctl.broker.jetstream import api_levels
from jsctl.broker.jetstream.batches.atomic import ID_BYTES_MAX
from jsctl.broker.jetstream.batches.fast_replies import (
    FastOperation,
    FastReply,
    flow_ack,
    flow_error,
    flow_gap,
    read_reply,
)
from jsctl.broker.jetstream.streams.batch_marks import BatchMark, Marks
from jsctl.broker.jetstream.streams.checks import Checks, Taken
from jsctl.broker.jetstream.streams.pub_acks import Ack
from jsctl.broker.jetstream.streams.publish_room import PublishRoom
from jsctl.broker.jetstream.streams.sequencer import Admitted, Building, Sequencer
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.store.record import Publish

FLOW_SHARED = 500
"""Messages between two acknowledgements, of all fast batches of a stream together."""


class FastStanding(NamedTuple):
    """Where a batch stands with an entry of the log."""

    stored: int
    """The stream's sequence of its last message; 0 before the first."""
    seq: int
    """Its last message that came, or is known not to come."""
    told: int
    """Up to where its publisher was told."""
    every: int
    """It is told after so many more."""


class FastBatch:
    """A batch that is not over."""

    __slots__ = ("active_ns", "ended", "entries", "flow", "gap_ok", "id", "now", "reply", "safe")

    def __init__(self, name: bytes, flow: int, gap_ok: bool, now: FastStanding) -> None:
        self.id = name
        self.flow = flow
        self.gap_ok = gap_ok
        self.now = self.safe = now
        """As it is when all is applied that is in flight, and as far as that is applied."""
        self.entries: deque[FastStanding] = deque()
        """Behind each entry in flight that has messages of it."""
        self.active_ns = 0
        self.reply = b""
        """That of the last message that was stored."""
        self.ended = False

    def settle(self, last_seq: int) -> bool:
        """The stream has applied up to `last_seq`; whether that is all of the batch."""
        while self.entries and self.entries[0].stored <= last_seq:
            self.safe = self.entries.popleft()
        return self.now.stored <= last_seq

    def enter(self, time_ns: int) -> BatchMark | None:
        """An entry with messages of it goes into the log; what is remembered with it."""
        now = self.now
        self.entries.append(now)
        if self.ended:
            return None
        return BatchMark(now.seq, now.stored, time_ns, self.flow, self.gap_ok, self.reply)

    def roll_back(self, next_seq: int) -> bool:
        """Messages from `next_seq` on are not in the log; whether some of them were its own."""
        if self.now.stored < next_seq:
            return False
        while self.entries and self.entries[-1].stored >= next_seq:
            self.entries.pop()
        self.now = self.entries[-1] if self.entries else self.safe
        self.ended = False
        return True


class FastBatches:
    """See the module."""

    def __init__(self, stream: Stream, sequencer: Sequencer, room: PublishRoom) -> None:
        self._stream = stream
        self._sequencer = sequencer
        self._room = room
        self.quiet = False
        """The stream acknowledges nothing: neither the begin of a batch nor a refusal is told."""
        self._open: dict[bytes, FastBatch] = {}
        self._ended: deque[FastBatch] = deque()
        """Of these, what waits only for what is in flight."""
        self._entered: dict[bytes, FastBatch] = {}
        """Those with messages in the entry that is being filled."""
        self._over: dict[bytes, None] = {}
        """Batches that are over, which the log is to forget with the next entry of others."""
        self._look_ns: int | None = None
        """When one may have been silent for too long."""

    # A message

    def take(
        self, publish: Publish, building: Building, made: Admitted, checks: Checks, time_ns: int
    ) -> None:
        """Judge a message, put it into the entry, and tell its publisher what there is to tell."""
        _, reply, headers, payload, _ = publish
        found = self._find(reply, headers, payload, checks, time_ns)
        if isinstance(found, ApiError):
            if not self.quiet:
                made.rejects.append((reply, self._sequencer.acks.refusal(found)))
            return
        batch, said = found
        batch.active_ns = time_ns
        if batch.ended and self._stream.config.num_replicas <= 1:
            self._refuse_behind(batch, reply, building, made)
        elif said.operation is FastOperation.PING:
            self._ping(batch, said, reply, building, made)
        elif not batch.ended:
            self._append(batch, said, publish, building, made, checks)

    def take_run(
        self, batch: list[Publish], time_ns: int, content_max: int, size_max: int
    ) -> Admitted | None:
        """A turn in which batches only go on, in order, with messages without headers: most of a
        fast batch. As a whole it costs what plain messages cost; None: it is not such a turn, or
        too large for one entry."""
        if any([item[2] for item in batch]):
            return None
        contents = [len(item[3]) for item in batch]
        size = sum(contents) + sum([len(item[0]) for item in batch])
        size += self._sequencer.overhead(headers=False) * len(batch)
        if size > size_max or max(contents) > content_max:
            return None
        self._tidy()
        self.expire(time_ns)
        runs = self._runs([item[1] for item in batch])
        if runs is None:
            return None
        first, told = self._sequencer.next_seq, list[Ack]()
        for one, start, stop in runs:
            one.active_ns, one.reply = time_ns, batch[stop - 1][1]
            self._entered[one.id] = one
            before, last = one.now.seq - start + 1, one.now.seq + stop - start
            while one.now.told + one.now.every <= last:
                seq = max(one.now.told + one.now.every, before + start)
                one.now = one.now._replace(seq=seq)
                told.append((batch[seq - before][1], self._next_flow(one)))
            one.now = one.now._replace(seq=last, stored=first + stop - 1)
        made = self._sequencer.take_all(
            batch, time_ns, size, [], tells=False, marks=self._marks(time_ns)
        )
        for ack in told:
            made.acks[0].append(ack)
        return made

    def _runs(self, replies: list[bytes]) -> list[tuple[FastBatch, int, int]] | None:
        """Which batch goes on from where to where, if nothing else happens."""
        found: list[tuple[FastBatch, int, int]] = []
        known: dict[bytes, int] = {}
        at, end = 0, len(replies)
        while at < end:
            said, start = read_reply(replies[at]), at
            one = None if said is None else self._open.get(said.id)
            if said is None or one is None or one.ended:
                return None
            seq = known.get(one.id, one.now.seq) + 1
            head = replies[at].rsplit(b".", 3)[0]
            while at < end and replies[at] == b"%b.%d.1.$FI" % (head, seq):
                at += 1
                seq += 1
            if at == start:
                return None
            known[one.id] = seq - 1
            found.append((one, start, at))
        return found

    def _find(
        self, reply: bytes, headers: bytes, payload: bytes, checks: Checks, time_ns: int
    ) -> tuple[FastBatch, FastReply] | ApiError:
        """The batch of a message, or why it is refused."""
        refused = checks.check_ingest(headers, payload)
        if refused is not None:
            return refused
        said = read_reply(reply)
        if said is None:
            return api_error("JSBatchPublishInvalidPatternErr")
        if len(said.id) > ID_BYTES_MAX:
            return api_error("JSBatchPublishInvalidBatchIDErr")
        self._tidy()
        self.expire(time_ns)
        batch = self._open.get(said.id) or self._begin(said, time_ns)
        if isinstance(batch, ApiError):
            return batch
        if api_levels.level_exceeded(headers):
            self._forget(batch)
            return api_error("JSRequiredApiLevelErr")
        return batch, said

    def _begin(self, said: FastReply, time_ns: int) -> FastBatch | ApiError:
        if said.seq != 1 or said.operation is FastOperation.PING:
            return api_error("JSBatchPublishUnknownBatchIDErr")
        if not self._room.has_fast(len(self._open)):
            return api_error("JSBatchPublishTooManyInflight")
        return self._add(
            FastBatch(said.id, said.flow, said.gap_ok, FastStanding(0, 0, 0, 0)), time_ns
        )

    def _add(self, batch: FastBatch, time_ns: int) -> FastBatch:
        self._open[batch.id] = batch
        self._over.pop(batch.id, None)
        self._room.fast += 1
        # Who is alone may have what it wants; others begin slowly.
        every = min(FLOW_SHARED, batch.flow) if len(self._open) == 1 else 1
        batch.now = batch.safe = batch.now._replace(every=every)
        batch.active_ns = time_ns
        if self._look_ns is None:
            self._look_ns = time_ns + self._room.limits.timeout_ns
        return batch

    def _append(
        self,
        batch: FastBatch,
        said: FastReply,
        publish: Publish,
        building: Building,
        made: Admitted,
        checks: Checks,
    ) -> None:
        reply, seq, expected = publish[1], said.seq, batch.now.seq + 1
        if seq != expected:
            made.rejects.append((reply, flow_gap(expected, seq)))
            if seq < expected or not batch.gap_ok:
                self._finish(batch, reply, building, made)
                return
        if said.operation is FastOperation.END:
            batch.now = batch.now._replace(seq=seq - 1)
            self._finish(batch, reply, building, made)
            return
        batch.now = batch.now._replace(seq=seq)
        commits = said.operation is FastOperation.COMMIT
        if seq == 1 and not commits and not self.quiet:
            made.rejects.append((reply, flow_ack(0, batch.now.every)))
        outcome = self._check(publish, checks, batch.active_ns)
        if isinstance(outcome, Taken):
            self._store(batch, outcome, reply, building, commits=commits)
        elif isinstance(outcome, int) and not commits:
            self._flow(batch, reply, building, made)
        else:
            self._refuse(batch, outcome, said, reply, building, made)

    def _check(self, publish: Publish, checks: Checks, time_ns: int) -> Taken | ApiError | int:
        subject, _, headers, payload, _ = publish
        if api_levels.REQUIRED_LEVEL in headers and blocks.get(headers, api_levels.REQUIRED_LEVEL):
            headers = blocks.remove(headers, api_levels.REQUIRED_LEVEL)
        last_id = self._sequencer.last_id
        outcome = checks.check(subject, headers, payload, time_ns, last_id, alone=True)
        assert isinstance(outcome, Taken | ApiError | int), "it is alone"
        return outcome

    def _store(
        self, batch: FastBatch, taken: Taken, reply: bytes, building: Building, *, commits: bool
    ) -> None:
        sequencer = self._sequencer
        sequencer.take(building, taken, b"", batch.active_ns)
        batch.now = now = batch.now._replace(stored=sequencer.next_seq - 1)
        batch.reply = reply
        self._entered[batch.id] = batch
        building.marker = self._marks
        if commits:
            self._end(batch)
            building.acks.append((reply, sequencer.acks.batch(now.stored, batch.id, now.seq)))
        elif now.seq >= now.told + now.every:
            building.acks.append((reply, self._next_flow(batch)))

    def _refuse(
        self,
        batch: FastBatch,
        outcome: ApiError | int,
        said: FastReply,
        reply: bytes,
        building: Building,
        made: Admitted,
    ) -> None:
        """A message that is not stored: refused, or the last one and known already."""
        acks, seq = self._sequencer.acks, said.seq
        if batch.now.seq == 1 and not batch.gap_ok:
            self._forget(batch)
            if isinstance(outcome, int):
                ack = acks.batch(outcome, batch.id, seq, duplicate=True)
                self._tell(outcome, (reply, ack), building, made)
            else:
                made.rejects.append((reply, acks.refusal(outcome)))
            return
        if isinstance(outcome, ApiError):
            made.rejects.append((reply, flow_error(seq, outcome)))
            if batch.gap_ok and said.operation is not FastOperation.COMMIT:
                # Else one of whom much is refused would wait for ever to be told how far it is.
                self._flow(batch, reply, building, made)
                return
            batch.now = batch.now._replace(seq=seq - 1)
        self._finish(batch, reply, building, made)

    # What publishers are told

    def _tell(self, seq: int, ack: Ack, building: Building, made: Admitted) -> None:
        """Tell a publisher something when the message `seq` is applied: now, if it is."""
        if seq <= self._stream.store.last_seq:
            made.rejects.append(ack)
        elif building.rows and building.rows[0][0] <= seq:
            building.acks.append(ack)
        else:
            holder = self._sequencer.in_flight.holder(seq)
            assert holder is not None, f"{seq} is neither applied nor on its way"
            holder.acks.append(ack)

    def _flow(self, batch: FastBatch, reply: bytes, building: Building, made: Admitted) -> bool:
        """Tell how far the batch is, if it is time to."""
        now = batch.now
        if now.seq < now.told + now.every:
            return False
        self._tell(now.stored, (reply, self._next_flow(batch)), building, made)
        return True

    def _next_flow(self, batch: FastBatch) -> bytes:
        """Towards a fair share, by halves and doubles."""
        now = batch.now
        told = now.seq - (now.seq - now.told) % now.every
        fair = min(max(FLOW_SHARED // len(self._open), 1), batch.flow)
        every = min(now.every * 2, fair) if now.every < fair else max(now.every // 2, fair)
        batch.now = now._replace(told=told, every=every)
        return flow_ack(told, every)

    def _ping(
        self, batch: FastBatch, said: FastReply, reply: bytes, building: Building, made: Admitted
    ) -> None:
        """Tell what is missing, and how far the batch is as far as that is certain."""
        stored, silent = batch.settle(self._stream.store.last_seq), False
        if said.seq > batch.now.seq and not batch.ended:
            made.rejects.append((reply, flow_gap(batch.now.seq + 1, said.seq + 1)))
            if batch.gap_ok:
                batch.now = batch.now._replace(seq=said.seq)
                silent = stored and self._flow(batch, reply, building, made)
            else:
                self._finish(batch, reply, building, made)
                silent = stored
        if not silent:
            sure = batch.now if stored else batch.safe
            made.rejects.append((reply, flow_ack(sure.told, batch.now.every)))

    # Ends

    def _finish(self, batch: FastBatch, reply: bytes, building: Building, made: Admitted) -> None:
        """Nothing more of a batch is taken; its publisher is told when all of it is applied."""
        self._end(batch)
        now = batch.now
        ack = self._sequencer.acks.batch(now.stored, batch.id, now.seq)
        self._tell(now.stored, (reply, ack), building, made)

    def _refuse_behind(
        self, batch: FastBatch, reply: bytes, building: Building, made: Admitted
    ) -> None:
        """As nats-server: where there are no others, a batch is over with its end. That is told
        before."""
        if not self.quiet:
            error = api_error("JSBatchPublishUnknownBatchIDErr")
            refusal = self._sequencer.acks.refusal(error)
            self._tell(batch.now.stored, (reply, refusal), building, made)

    def _end(self, batch: FastBatch) -> None:
        batch.ended = True
        self._ended.append(batch)

    def _tidy(self) -> None:
        """Forget what is over, and applied."""
        last_seq = self._stream.store.last_seq
        while self._ended and self._ended[0].settle(last_seq):
            self._forget(self._ended.popleft())

    def _forget(self, batch: FastBatch) -> None:
        if self._open.get(batch.id) is batch:
            del self._open[batch.id]
            self._room.fast -= 1
            if batch.entries or batch.id in self._stream.batches:
                self._over[batch.id] = None

    def next_due_ns(self) -> int | None:
        """When `expire` has something to look at."""
        return self._look_ns

    def expire(self, now_ns: int) -> None:
        """Forget those of which nothing came for too long."""
        if self._look_ns is None or now_ns < self._look_ns:
            return
        self._tidy()
        wait_ns = self._room.limits.timeout_ns
        silent = [one for one in self._open.values() if one.active_ns + wait_ns <= now_ns]
        for batch in silent:
            self._forget(batch)
        due = [batch.active_ns + wait_ns for batch in self._open.values()]
        self._look_ns = min(due, default=None)

    def end(self) -> None:
        """Another server leads, or the stream takes no batches any more."""
        self._room.fast -= len(self._open)
        self._open.clear()
        self._ended.clear()
        self._look_ns = None

    # The log

    def _marks(self, time_ns: int) -> Marks:
        """What goes into the log with the messages of an entry."""
        over: Marks = dict.fromkeys(self._over)
        self._over.clear()
        entered, self._entered = self._entered, {}
        return {**over, **{name: batch.enter(time_ns) for name, batch in entered.items()}}

    def dropped(self) -> None:
        """The log did not take what was made last."""
        next_seq = self._sequencer.next_seq
        for batch in self._open.values():
            if batch.roll_back(next_seq) and batch in self._ended:
                self._ended.remove(batch)

    def revive(self, time_ns: int) -> list[Ack]:
        """Go on with what another leader had, and tell the publishers that somebody is there."""
        said: list[Ack] = []
        for name, mark in self._stream.batches.items():
            silent = mark.time_ns + self._room.limits.timeout_ns <= time_ns
            if silent or not self._room.has_fast(len(self._open)):
                self._over[name] = None
                continue
            standing = FastStanding(mark.stored, mark.seq, mark.seq, 0)
            batch = self._add(FastBatch(name, mark.flow, mark.gap_ok, standing), time_ns)
            batch.reply = mark.reply
            said.append((mark.reply, flow_ack(mark.seq, batch.now.every)))
        return said
