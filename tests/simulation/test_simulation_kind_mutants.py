"""Planted bugs in sessions, routes, streams and consumers: each is found by a model or a check.

Where it can be, a bug is planted around the node, by what builds it: that works whatever the node
is made of. Bugs inside of it are planted by patches: seams for them would be in the way of every
reader of the production code, and of every message.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from jsctl.broker.assets import membership
from jsctl.broker.assets.membership import Step
from jsctl.broker.assets.replicas.consumed_messages import ConsumedMessages
from jsctl.broker.jetstream.consumers.acknowledging import Acknowledging
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery
from jsctl.broker.jetstream.consumers.dispatch.pacing import RateLimit
from jsctl.broker.jetstream.consumers.redelivery import Redelivery
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.jetstream.streams.dedupe import Dedupe
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jetstream.streams.timers import Timers
from jsctl.broker.node import Node
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.pieces import Piece
from jsctl.broker.raft.types import PeerId
from jsctl.broker.routes.mesh import Mesh
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.subject.matching import Filters
from jsctl.broker.turn import TurnInputs, TurnOutputs
from tests.simulation.hunting import drawn, hunt, hunt_build, note
from tests.simulation.plan import ConsumerKind, Item, Plan, StreamKind, draw_kinds
from tests.simulation.run import failure
from tests.simulation.settings import Build
from tests.simulation.world import SECOND

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]
SEEDS = 24
RATE_BYTES = 800_000


class Altered(Node):
    """A node whose input or output is altered on the way."""

    def turn(self, inputs: TurnInputs, now_ns: int) -> TurnOutputs:
        inputs.chunks = [(conn, self.comes(conn, data)) for conn, data in inputs.chunks]
        outputs = super().turn(inputs, now_ns)
        outputs.writes = [(conn, self.goes(data)) for conn, data in outputs.writes]
        return outputs

    def comes(self, conn: int, data: bytes) -> bytes:
        """Bytes that a connection brought."""
        return data

    def goes(self, data: bytes) -> bytes:
        """Bytes that leave."""
        return data


class KeepsWhoUnsubscribed(Altered):
    """A session does not hear that a subscription ends."""

    def comes(self, conn: int, data: bytes) -> bytes:
        return re.sub(rb"UNSUB \d+\r\n", b"", data)


class TellsRoutesOfNoSubscription(Altered):
    """Other servers hear of groups only."""

    def goes(self, data: bytes) -> bytes:
        return re.sub(rb"RS\+ \$G room\.>\r\n", b"", data)


class TakesRoutedTwice(Altered):
    """What is sent to a route arrives twice."""

    def goes(self, data: bytes) -> bytes:
        return re.sub(rb"(RMSG \$G room\.\S+ 10\r\n.{10}\r\n)", rb"\1\1", data)


class IgnoresFailedDisks(Altered):
    """Takes what could not be written for durable."""

    def turn(self, inputs: TurnInputs, now_ns: int) -> TurnOutputs:
        failed, inputs.disk_failed = inputs.disk_failed, []
        inputs.synced += [ticket for ticket, _ in failed]
        outputs = super().turn(inputs, now_ns)
        inputs.disk_failed = failed
        return outputs


class LosesTheEndOfARun(Altered):
    """Of publishes that arrive together, as the lane takes them, the last one gets lost."""

    def comes(self, conn: int, data: bytes) -> bytes:
        runs = rb"((?:PUB room\.\S+ \d+\r\n[^\r]*\r\n)+)PUB room\.\S+ \d+\r\n[^\r]*\r\n"
        return re.sub(runs, rb"\1", data)


class TurnsRunsAround(Altered):
    """Of publishes that arrive together the first two are taken in the wrong order."""

    def comes(self, conn: int, data: bytes) -> bytes:
        one = rb"(PUB room\.\S+ \d+\r\n[^\r]*\r\n)"
        return re.sub(one + one, rb"\2\1", data, count=1)


@pytest.mark.planted
@pytest.mark.parametrize(
    "build",
    [
        KeepsWhoUnsubscribed,
        pytest.param(TellsRoutesOfNoSubscription, marks=pytest.mark.mutants),
        TakesRoutedTwice,
        LosesTheEndOfARun,
        TurnsRunsAround,
    ],
)
def test_bug_around_the_node_is_found(build: Build) -> None:
    hunt_build(build, drawn(draw_kinds, 1, SEEDS))


def _plans_are_never_made_anew(patch: Patch) -> None:
    def stale(self: ClientSession, subject: bytes) -> object:
        if subject in self.plans:
            return self.plans[subject]
        return plan_for(self, subject)

    plan_for = ClientSession.plan_for
    patch.setattr(ClientSession, "plan_for", stale)


def _forwarded_twice(patch: Patch) -> None:
    def twice(self: PeerOutbox) -> list[tuple[PeerId, list[list[Piece]]]]:
        for parcel in filter(None, self._parcels.values()):
            parcel.forwards.extend(list(parcel.forwards))
        return take(self)

    take = PeerOutbox.take
    patch.setattr(PeerOutbox, "take", twice)


def _floor_jumps(patch: Patch) -> None:
    def jump(self: ConsumerState, oldest: int) -> None:
        self.floor_seq, self.floor_stream = self.delivered_seq, self.delivered_stream

    patch.setattr(ConsumerState, "_raise_floor", jump)


def _half_the_ack_wait(patch: Patch) -> None:
    wait_of = Redelivery.wait_of
    patch.setattr(Redelivery, "wait_of", lambda self, count: wait_of(self, count) // 2)


def _delivered_once_more(patch: Patch) -> None:
    def queue(self: Acknowledging, seqs: list[int], now_ns: int) -> None:
        self._delivery.redelivery.queue(seqs)

    patch.setattr(Acknowledging, "deliver_again", queue)


def _any_number_without_ack(patch: Patch) -> None:
    patch.setattr(ConsumerDelivery, "room", lambda self: 1 << 40)


def _no_filter(patch: Patch) -> None:
    def peek(self: ConsumerDelivery, count: int) -> object:
        before, self.consumer.filters = self.consumer.filters, Filters()
        try:
            return peek_new(self, count)
        finally:
            self.consumer.filters = before

    peek_new = ConsumerDelivery.peek_new
    patch.setattr(ConsumerDelivery, "peek_new", peek)


def _half_the_window(patch: Patch) -> None:
    def find(self: Dedupe, message_id: bytes, now_ns: int) -> int | None:
        found = self._seqs.get(message_id)
        return None if found is None or found[1] + self.window_ns // 2 <= now_ns else found[0]

    patch.setattr(Dedupe, "find", find)


def _one_more_expires(patch: Patch) -> None:
    def bound(self: Timers, now_ns: int, one_by_one: bool) -> int:
        found = age_bound(self, now_ns, one_by_one)
        return min(found + 1, self._stream.store.last_seq) if found else 0

    age_bound = Timers._age_bound
    patch.setattr(Timers, "_age_bound", bound)


def _nothing_expires(patch: Patch) -> None:
    patch.setattr(Timers, "_age_due_ns", lambda self: None)


def _one_more_of_a_subject(patch: Patch) -> None:
    def retain(self: Stream, index: int, subjects: set[bytes]) -> None:
        limit = self.config.max_msgs_per_subject + 1
        over = [(one, self.store.count_for(one) - limit) for one in subjects]
        self.store.remove_oldest([pair for pair in over if pair[1] > 0], index)

    patch.setattr(Stream, "_retain_subjects", retain)


def _one_consumer_is_enough(patch: Patch) -> None:
    def done(self: ConsumedMessages, seq: int) -> bool:
        subject = self.stream.store.subject_of(seq) or b""
        known = self.interests.watchers.values()
        return any(not watcher.needs(seq, subject) for watcher in known)

    patch.setattr(ConsumedMessages, "_is_done_with", done)


def _voters_are_added_again(patch: Patch) -> None:
    def add(
        wanted: Sequence[PeerId],
        voters: Collection[PeerId],
        learners: Collection[PeerId],
        online: Callable[[PeerId], bool],
    ) -> Step | None:
        return find(wanted, (), learners, online)

    find = membership._add
    patch.setattr(membership, "_add", add)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("plant", "first"),
    [
        pytest.param(_voters_are_added_again, 11, marks=pytest.mark.mutants),
        pytest.param(_plans_are_never_made_anew, 0, marks=pytest.mark.mutants),
        (_floor_jumps, 1),
        (_half_the_ack_wait, 7),
        (_delivered_once_more, 201),
        (_any_number_without_ack, 2),
        (_no_filter, 0),
        (_half_the_window, 27),
        (_one_more_expires, 1),
        pytest.param(_nothing_expires, 0, marks=pytest.mark.mutants),
        (_one_more_of_a_subject, 17),
        (_one_consumer_is_enough, 13),
    ],
)
def test_bug_inside_is_found(plant: Plant, first: int, monkeypatch: Patch) -> None:
    hunt(plant, drawn(draw_kinds, first, SEEDS), monkeypatch)


@pytest.mark.planted
def test_a_request_that_is_forwarded_twice_is_found(monkeypatch: Patch) -> None:
    """That each is answered once is looked at where no leader changes: in plans without faults."""

    def calm_kinds(seed: int, servers: int) -> Plan:
        return replace(draw_kinds(seed, servers), items=())

    hunt(_forwarded_twice, drawn(calm_kinds, 63, SEEDS), monkeypatch)


def _no_rate(patch: Patch) -> None:
    patch.setattr(RateLimit, "fitting", lambda self, sizes: len(sizes))


def _tokens_without_limit(patch: Patch) -> None:
    def fill(self: RateLimit, now_ns: int) -> None:
        gained = (now_ns - self.filled_ns) * self.rate / SECOND
        self.tokens = self.tokens + gained if self.filled_ns else float(self.burst_bytes)
        self.filled_ns = now_ns

    patch.setattr(RateLimit, "fill", fill)


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize("plant", [_no_rate, _tokens_without_limit])
def test_a_rate_that_is_not_kept_is_found(plant: Plant, monkeypatch: Patch) -> None:
    """More than the bucket holds has to be published, which plans of seeds do not; after a pause
    in which tokens gather."""
    consumer = ConsumerKind(ack="none", push=True, rate_bps=8 * RATE_BYTES)
    kind = StreamKind(bytes_more=60_000, consumers=(consumer,))
    pauses = tuple(Item(2_000, "pause", number, 0, 2_500) for number in range(3))
    plan = Plan(1, 3, streams=((1, "file", -1),), kinds=(kind,), chaos_ms=6_000, items=pauses)
    assert not failure(plan)

    with monkeypatch.context() as planted:
        plant(planted)
        told = failure(plan)
    assert "tokens" in told
    note(plant.__name__, "a staged plan", told)


@pytest.mark.planted
def test_a_route_that_is_not_pinged_in_time_is_found(monkeypatch: Patch) -> None:
    """The wake-up for a PING counts where nothing else is due: a server that all others dial."""

    def wake(self: Mesh, at_ns: int | None) -> None:
        if at_ns not in {link.ping_due_ns for link in self._links.values()}:
            woken(self, at_ns)

    woken = Mesh._wake
    plan = Plan(1, 3, seeds=1, chaos_ms=3_000)
    assert not failure(plan)
    monkeypatch.setattr(Mesh, "_wake", wake)
    told = failure(plan)
    assert "first PING" in told
    note("no_wake_up_for_a_ping", "a staged plan", told)
