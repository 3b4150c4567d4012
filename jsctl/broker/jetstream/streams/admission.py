"""The leader's side of a stream: which publishes are taken, and as what.

`StreamLeader` exists only while this server leads the stream's group and has applied its own
first entry. It judges a turn's publishes by applied and in-flight state, and by the newest config
that the log has before them; it gives them sequences and a time, and encodes them once. Whether the
log takes the entries is told by `proposed`, that they are applied by `applied`.

Batches without headers, or with new message ids and nothing else, on a stream without rules for
single messages are a handful of list operations; all else goes one by one through `checks`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig
from jsctl.broker import lazy
from jsctl.broker.accel.choice import column_loops
from jsctl.broker.deadlines import earliest
from jsctl.broker.jetstream.batches.words import BatchEnd
from jsctl.broker.jetstream.config_texts import STREAMS
from jsctl.broker.jetstream.streams.absent import is_ingest
from jsctl.broker.jetstream.streams.checks import (
    HEADER_BYTES_MAX,
    SEARCHED_MAX,
    Checks,
    Part,
    Taken,
)
from jsctl.broker.jetstream.streams.entries import (
    ALL_SUBJECTS,
    ENTRY_BYTES_MAX,
    SKIPPED_TO_MAX,
    encode_begin,
    encode_config,
    encode_delete,
    encode_purge,
    encode_remove,
    encode_sourced,
)
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.pub_acks import Ack, Acks, PubAcks
from jsctl.broker.jetstream.streams.publish_room import PublishRoom
from jsctl.broker.jetstream.streams.sequencer import Admitted, Arrived, Building, Sequencer
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jetstream.streams.timers import Timers
from jsctl.broker.ports import ZoneOffset, only_utc
from jsctl.broker.store.record import Publish

if TYPE_CHECKING:
    from jsctl.broker.jetstream.batches import publishing
    from jsctl.broker.jetstream.batches.publishing import BatchPublishing
    from jsctl.broker.jetstream.scheduling import firing, rules
    from jsctl.broker.jetstream.scheduling.firing import Firing
    from jsctl.broker.jetstream.scheduling.rules import ScheduleRules
    from jsctl.broker.jetstream.scheduling.schedules import Schedules
    from jsctl.broker.jetstream.streams import counters
    from jsctl.broker.jetstream.streams.counters import Counting
else:
    counters = lazy.module("jsctl.broker.jetstream.streams.counters")
    publishing = lazy.module("jsctl.broker.jetstream.batches.publishing")
    rules = lazy.module("jsctl.broker.jetstream.scheduling.rules")
    firing = lazy.module("jsctl.broker.jetstream.scheduling.firing")

Message = tuple[bytes, bytes, bytes]
"""(subject, headers, payload)"""
IN_FLIGHT_MESSAGES_MAX = 100_000
IN_FLIGHT_BYTES_MAX = 128 << 20
"""Beyond these publishes are refused with `too many requests`."""


def _everybody(subject: bytes) -> bool:
    return True


def _nobody(seq: int) -> bool:
    return False


def _nothing() -> Iterable[bytes]:
    return ()


class StreamLeader:
    """Admission for one stream, from one win of its group's leadership to the loss of it.

    `interested` says whether a consumer wants a subject. `needs` is told of a message that has to
    be read and is damaged here, and says whether another replica may have it. `unapplied` gives the
    entries that are in the log and not applied.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        interested: Callable[[bytes], bool] = _everybody,
        domain: str = "",
        room: PublishRoom | None = None,
        needs: Callable[[int], bool] = _nobody,
        zones: ZoneOffset = only_utc,
        unapplied: Callable[[], Iterable[bytes]] = _nothing,
    ) -> None:
        self.stream = stream
        self._refusal: ApiError | None = None
        self.interested = interested
        self._acks = PubAcks(stream.name, domain)
        self._sequencer = Sequencer(stream, self._acks)
        self.in_flight = self._sequencer.in_flight
        self._time_ns = max(stream.store.last_time_ns, stream.dedupe.over_ns)
        self._timers = Timers(stream, self.in_flight)
        self.abandoned: list[BatchEnd] = []
        """Batches that were given up; whoever tells operators takes them."""
        self._room = room or PublishRoom()
        self._batches: BatchPublishing | None = None
        """Once somebody publishes one."""
        self._coming: tuple[int, StreamConfig] | None = None
        """Revision and config that the log took, and that may not be applied yet."""
        self._revision = -1
        self._checks: Checks
        self._needs = needs
        self._zones = zones
        self._unapplied = unapplied
        self._now_ns = 0
        """What the clock shows, which may go back."""
        self._rules: ScheduleRules | None = None
        """Once somebody publishes a schedule."""
        self._firing: Firing | None = None
        """Once there are schedules."""
        self._counting: Counting | None = None
        """In a stream of counters."""
        self.config: StreamConfig
        """What publishes are judged by: the newest config in the log, applied or not."""
        self._short = False
        self._payload_max = 0
        self._reconfigure()

    def _reconfigure(self) -> None:
        stream = self.stream
        self._revision = stream.revision
        if self._coming is not None and self._coming[0] <= stream.revision:
            self._coming = None
        self.config = config = stream.config if self._coming is None else self._coming[1]
        wanted = stream, config, self.in_flight, self.interested, self._scheduling
        if config.allow_msg_counter:
            self._checks = counters.CounterChecks(*wanted, self._counts())
        else:
            self._checks = Checks(*wanted)
        if self._batches is not None:
            self._batches.configure(config)
        self._short = self._checks.trivial
        self._payload_max = config.max_msg_size if config.max_msg_size > 0 else 1 << 62

    def _counts(self) -> "Counting":
        if self._counting is None:
            totals = counters.CounterTotals(self.stream, self.in_flight, self._needs)
            self._counting = counters.Counting(totals, lambda: self._room.limits.payload_bytes_max)
        return self._counting

    def _scheduling(self) -> "ScheduleRules":
        if self._rules is None:
            stream, zones = self.stream, self._zones
            self._rules = rules.ScheduleRules(stream, self.in_flight, zones, lambda: self._now_ns)
        return self._rules

    def _pass_time(self, now_ns: int) -> None:
        """What is stored from now on is not older than anything before."""
        self._now_ns = now_ns
        self._time_ns = max(self._time_ns, now_ns)

    # Publishes.

    def refuse_all(self, refusal: ApiError | None) -> None:
        """Until told otherwise; why: account or server are out of room."""
        self._refusal = refusal

    def search_on(self) -> None:
        """Another turn may search through as much as those did that left a rest."""
        self._checks.searched = 0

    def admit(self, batch: list[Publish], now_ns: int) -> Admitted:
        """Judge a turn's publishes, in order, and encode those that are taken."""
        if self._revision != self.stream.revision:
            self._reconfigure()
        self._pass_time(now_ns)
        refusal = self._refusal or self._overload()
        if self.in_flight.rest:
            batch, self.in_flight.rest = self.in_flight.rest + batch, []
        if refusal is not None:
            return Admitted(rejects=self._refuse(batch, refusal))
        tells = not self.config.no_ack
        alike = column_loops().read_publishes(batch) if self._short else None
        if alike is not None:
            ids, size, headers_max, content_max = alike
            size += self._sequencer.overhead(headers=bool(ids)) * len(batch)
            fits = headers_max <= HEADER_BYTES_MAX and size <= ENTRY_BYTES_MAX
            if fits and content_max <= self._payload_max and (not ids or self._are_new(ids)):
                return self._sequencer.take_all(batch, self._time_ns, size, ids, tells=tells)
        if self._batches is not None and self._short and batch and is_ingest(batch[0][1]):
            fast, most = self._batches.fast, self._payload_max
            if made := fast.take_run(batch, self._time_ns, most, ENTRY_BYTES_MAX):
                return made
        counted = self._checks.together(batch, self._sequencer.next_seq)
        whole = self._sequencer.take_increments(counted, batch, self._time_ns, tells=tells)
        return whole or self._take_each(batch)

    def admit_sourced(
        self, key: str, arrivals: Sequence[Arrived], now_ns: int
    ) -> tuple[Admitted, int, ApiError | None]:
        """Take messages of a source, in order; how many, and why not the next one.

        Those that were published here before count: they are known. Without a key they are of a
        mirror's origin, and keep its sequences and times.
        """
        if self._revision != self.stream.revision:
            self._reconfigure()
        self._pass_time(now_ns)
        made, count = Admitted(), 0
        refusal = self._refusal or self._overload()
        if refusal is not None:
            return made, 0, refusal
        building = self._begin_building()
        most = self._payload_max if self._short else -1
        if self._sequencer.fill(building, key, arrivals, self._time_ns, most):
            self._sequencer.close(building, made)
            return made, len(arrivals), None
        for seq, time_ns, subject, headers, payload, identity, _ in arrivals:
            count += 1
            if not key and seq < self._sequencer.next_seq:
                continue
            outcome = self._checks.check_sourced(subject, headers, payload, self._time_ns)
            if isinstance(outcome, ApiError):
                refusal, count = outcome, count - 1
                break
            if key:
                building.positions[key] = SourcePosition(seq, identity)
                time_ns = self._time_ns
            else:
                self._sequencer.next_seq = seq
            if isinstance(outcome, Taken):
                self._sequencer.take(building, outcome, b"", time_ns)
                if building.size >= ENTRY_BYTES_MAX:
                    building = self._close(building, made)
        self._close(building, made)
        return made, count, refusal

    def sourced(self, positions: dict[str, SourcePosition]) -> Admitted:
        """It is known up to where this stream has its sources."""
        made = Admitted()
        self._sequencer.add_other(encode_sourced(positions), made)
        return made

    def begin_at(self, first: int) -> Admitted:
        """A stream that holds nothing goes on with a sequence above its last."""
        made = Admitted()
        self._sequencer.add_other(encode_begin(first), made)
        self._sequencer.next_seq = max(self._sequencer.next_seq, first)
        return made

    def judge(self, item: Publish, now_ns: int) -> Taken | ApiError | int | Part:
        """What would come of one publish now, as `Checks.check` says it; nothing is admitted."""
        if self._revision != self.stream.revision:
            self._reconfigure()
        refusal = self._refusal or self._overload()
        if refusal is not None:
            return refusal
        sequencer = self._sequencer
        self._checks.begin(sequencer.next_seq, [])
        self._now_ns = now_ns
        subject, reply, headers, payload, _ = item
        time_ns, alone = max(self._time_ns, now_ns), is_ingest(reply)
        return self._checks.check(
            subject, headers, payload, time_ns, sequencer.last_id, alone=alone
        )

    def _are_new(self, ids: Sequence[bytes]) -> bool:
        """Whether nothing has to be known of these ids but that they are to be remembered."""
        dedupe = self.stream.dedupe
        return (
            dedupe.window_ns > 0
            and len(set(ids)) == len(ids)
            and self.in_flight.ids.keys().isdisjoint(ids)
            and not dedupe.has_any(ids)
        )

    def _take_each(self, batch: Sequence[Publish]) -> Admitted:
        made, building = Admitted(), self._begin_building()
        no_ack, checks = self.config.no_ack, self._checks
        for at, publish in enumerate(batch):
            if checks.searched > SEARCHED_MAX:
                self.in_flight.rest = list(batch[at:])
                break
            subject, reply, headers, payload, _ = publish
            if is_ingest(reply):
                fast = self._publishing().fast
                fast.take(publish, building, made, checks, self._time_ns)
                if building.size >= ENTRY_BYTES_MAX:
                    building = self._close(building, made)
                continue
            reply = b"" if no_ack else reply
            last_id = self._sequencer.last_id
            outcome = checks.check(subject, headers, payload, self._time_ns, last_id)
            if isinstance(outcome, Taken):
                self._sequencer.take(building, outcome, reply, self._time_ns)
                if building.size >= ENTRY_BYTES_MAX:
                    building = self._close(building, made)
            elif isinstance(outcome, ApiError):
                if reply:
                    made.rejects.append((reply, self._acks.refusal(outcome)))
            elif isinstance(outcome, int):
                self._duplicate_of(outcome, reply, made)
            else:
                member = subject, headers, payload
                building = self._take_part(member, outcome, reply, building, made)
        self._close(building, made)
        return made

    def _begin_building(self) -> Building:
        building = self._sequencer.begin()
        self._checks.begin(self._sequencer.next_seq, building.rows)
        return building

    def _close(self, building: Building, made: Admitted) -> Building:
        self._sequencer.close(building, made)
        return self._begin_building()

    def _duplicate_of(self, seq: int, reply: bytes, made: Admitted) -> None:
        """Answer a retry: with the first one's ack if that is in flight, else at once."""
        if not reply:
            return
        answer = (reply, self._acks.duplicate % seq)
        waiting = self.in_flight.ids.get(self._checks.message_id)
        if waiting is None:
            made.rejects.append(answer)
        else:
            waiting[1].append(answer)

    def _take_part(
        self,
        member: Message,
        part: Part,
        reply: bytes,
        building: Building,
        made: Admitted,
    ) -> Building:
        """A message of an atomic batch. If it completes it, another entry has to be filled."""
        batches = self._publishing()
        batch = batches.take(member, part.fields, reply, self._time_ns, made)
        if batch is None:
            return building
        self._sequencer.close(building, made)
        batches.commit(batch, reply, self._time_ns, made)
        return self._begin_building()

    def _publishing(self) -> "BatchPublishing":
        if self._batches is None:
            self._batches = publishing.BatchPublishing(
                self.stream,
                self._sequencer,
                self._room,
                self.abandoned,
                self.interested,
                self._scheduling,
                self._counting,
            )
            self._batches.configure(self.config)
        return self._batches

    def revive(self, now_ns: int) -> Admitted:
        """Go on with what another leader had begun, and tell publishers so."""
        made = Admitted()
        if self.stream.batches and self.config.allow_batched:
            self._pass_time(now_ns)
            made.rejects += self._publishing().fast.revive(self._time_ns)
        return made

    def _overload(self) -> ApiError | None:
        waiting = self.in_flight
        messages = waiting.messages + len(waiting.rest)
        if messages > IN_FLIGHT_MESSAGES_MAX or waiting.bytes > IN_FLIGHT_BYTES_MAX:
            return api_error("JSStreamTooManyRequests")
        return None

    def _refuse(self, batch: Sequence[Publish], refusal: ApiError) -> list[Ack]:
        if self.config.no_ack:
            return []
        payload = self._acks.refusal(refusal)
        return [(item[1], payload) for item in batch if item[1]]

    def refused(self, acks: Sequence[Acks]) -> list[Ack]:
        """The answers to publishes that the log did not take."""
        body = self._acks.refusal(api_error("JSClusterNotAvailErr"))
        # Publishers of fast batches are told what is missing, not each message that is.
        told = [reply for some in acks for reply, _ in some if not is_ingest(reply)]
        return [(reply, body) for reply in told]

    # Other entries, made by the leader so that bounds are fixed.

    def purge(self, subject_filter: bytes, up_to: int, keep: int) -> bytes:
        """A PURGE entry; `up_to` 0 means everything admitted so far. A purge of all subjects up to
        a sequence above it has the stream go on behind that one."""
        bound = self.next_seq - 1
        if subject_filter in ALL_SUBJECTS and bound < up_to <= SKIPPED_TO_MAX:
            self._sequencer.go_behind(up_to)
            bound = up_to
        return encode_purge(subject_filter, min(up_to, bound) if up_to else bound, keep)

    def delete(self, seq: int, erase: bool) -> bytes:
        """A DELETE entry."""
        return encode_delete(seq, erase)

    def remove(self, seqs: Sequence[int]) -> bytes:
        """A REMOVE entry, for messages that were consumed."""
        return encode_remove(seqs)

    def configure(self, revision: int, config: StreamConfig) -> bytes:
        """A CONFIG entry."""
        return encode_config(revision, STREAMS.text(config))

    def configured(self, revision: int, config: StreamConfig) -> None:
        """The log took a CONFIG entry: what is admitted from now on is stored behind it."""
        self._coming = revision, config
        self._reconfigure()

    # Time.

    def expire(self, now_ns: int) -> Admitted:
        """What time removes by now, perhaps with markers in its place; perhaps nothing.

        To be proposed like admitted batches. Nothing is returned while an earlier such
        batch is in flight.
        """
        self._pass_time(now_ns)
        if self._batches is not None:
            self._batches.expire(self._time_ns)
        made, idle = Admitted(), not self._timers.waiting
        found = self._timers.due(self._time_ns, self.next_seq)
        for entry, rows in found:
            self._sequencer.add_timed(entry, rows, made)
        if self.stream.schedules is not None and idle:
            self._fire(self.stream.schedules, now_ns, made)
            self._timers.joined(len(made.entries) - len(found))
        return made

    def _fire(self, schedules: "Schedules", now_ns: int, made: Admitted) -> None:
        """What is made of schedules that are due by now."""
        if self._revision != self.stream.revision:
            self._reconfigure()
        fires = self._due_schedules()
        if self.config.sealed or self._refusal is not None or self._overload() is not None:
            fires.wait(now_ns)
            return
        fires.fire(schedules, self._sequencer, self._checks, self._time_ns, now_ns, made)

    def _due_schedules(self) -> "Firing":
        if self._firing is None:
            known = self._scheduling()
            self._firing = firing.Firing(
                self.stream, self.in_flight, known, self._unapplied, self._needs
            )
        return self._firing

    def next_due_ns(self) -> int | None:
        """When `expire` should be called next; None if nothing is to expire."""
        due_ns = self._timers.next_due_ns()
        if self._batches is not None:
            due_ns = earliest(due_ns, self._batches.next_due_ns())
        schedules = self.stream.schedules
        if schedules is not None and (schedules or schedules.scan) and not self._timers.waiting:
            due_ns = earliest(due_ns, self._due_schedules().next_due_ns(schedules))
        return due_ns

    # The log.

    def proposed(self, first_index: int | None) -> None:
        """Where the log put the entries of the last `admit` or `expire`; None: nowhere.

        What was not taken is rolled back, as if it had never been admitted.
        """
        self._sequencer.proposed(first_index)
        if first_index is None:
            self._timers.dropped()
            if self._batches is not None:
                self._batches.fast.dropped()

    def applied(self, index: int) -> None:
        """Everything up to this index is in the stream's state."""
        if self.in_flight.applied(index):
            self._timers.landed()

    @property
    def next_seq(self) -> int:
        """The sequence that the next message will get."""
        return self._sequencer.next_seq

    def end(self) -> None:
        """Another server leads: batches that are not complete are given up."""
        if self._batches is not None:
            self._batches.end()
        self._batches = self._rules = self._firing = self._counting = None
        del self._checks  # It holds this one, as those do.
