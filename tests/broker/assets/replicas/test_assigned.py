"""What follows from an assignment: the config goes into the log, and the asker is answered once."""

import random
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from jsctl.api.stream import StreamConfig
from jsctl.broker.assets.replicas.assigned import OWED_MAX, OWED_NS, Assigned
from jsctl.broker.assets.replicas.replica_context import AccountTraffic, Quota, ReplicaContext
from jsctl.broker.jetstream.meta.assignments import GroupAssignment, StreamAssignment
from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.raft.types import Timing
from jsctl.broker.replication.bootstrap import GroupBootstrap
from jsctl.broker.replication.checkpoints import GroupLimits
from jsctl.broker.replication.group import GroupKind, RaftGroup, Replica
from jsctl.broker.replication.groups import Groups
from jsctl.broker.store.wal.log import Wal, WalOptions
from tests.support.sim_disk import SimDisk

NOW = 1_000


class Runner:
    """The replica."""

    def run(self) -> None:
        """Nothing."""

    def next_due_ns(self) -> int | None:
        """Never."""
        return None


def request(number: int) -> ApiRequest:
    """Somebody asked."""
    return ApiRequest("A", b"$JS.API.X", b"reply%d" % number, b"", b"", ClientInfo("A"), "me")


def assignment(
    asked: ApiRequest | None, *, members: Sequence[str] = ("me",), group: str = "S-1"
) -> StreamAssignment:
    """A stream that lies here."""
    place = GroupAssignment(group, tuple(members), "file")
    return StreamAssignment("A", "S", StreamConfig(name="S"), place, 1, ClientInfo("A"), asked)


@pytest.fixture
def context() -> ReplicaContext:
    """A server `me`, with a log."""
    disk = SimDisk(random.Random(1))
    wal, _ = Wal.open(disk, "log", WalOptions(bytes(16)))
    context = ReplicaContext(
        me="me",
        server_name="n1",
        cluster="c",
        incarnation=1,
        boot=1,
        disk=disk,
        traffic=cast(AccountTraffic, None),
        groups=Groups(wal, PeerOutbox("me"), GroupLimits()),
        jitter=lambda n: 0,
        quota=cast(Quota, None),
    )
    context.now_ns = NOW
    return context


Make = Callable[[ApiRequest | None], Assigned[StreamAssignment]]


@pytest.fixture
def make(context: ReplicaContext) -> Make:
    """Assign the stream, as somebody asked for; nobody leads it yet."""
    wal = context.groups.wal
    starter = GroupBootstrap("me", 1, 1, wal, Timing(), context.jitter)
    peers = ("me", "b")
    raft = starter.start(b"S-1", None, peers=peers, founders=peers, life=1, volatile=False)
    group = RaftGroup("S-1", b"S-1", GroupKind.STREAM, raft, cast(Replica, None), {})
    return lambda asked: Assigned(context, assignment(asked), group)


def asked(one: Assigned[StreamAssignment]) -> list[ApiRequest]:
    """Who is to be answered."""
    return [request for _, request in one.take_requests()]


def test_who_asked_is_answered_once(make: Make) -> None:
    one = make(request(1))
    assert one.is_owed
    assert asked(one) == [request(1)]
    assert not asked(one)


def test_nobody_waits_for_ever(context: ReplicaContext, make: Make) -> None:
    one = make(request(1))
    context.now_ns = NOW + OWED_NS - 1
    assert asked(one) == [request(1)]
    one = make(request(1))
    context.now_ns += OWED_NS
    assert not asked(one) and not one.is_owed


def test_who_waited_before_a_restart_does_not_any_more(context: ReplicaContext, make: Make) -> None:
    context.replaying = True
    one = make(request(1))
    assert not one.is_owed and not asked(one)
    context.replaying = False
    one.renew(assignment(request(2)))
    assert asked(one) == [request(2)]


def test_an_assignment_that_changed_without_a_request_owes_nothing_new(make: Make) -> None:
    one = make(request(1))
    assert asked(one) == [request(1)]
    newer = assignment(request(1), members=("me", "b"))
    one.renew(newer)
    assert not one.is_owed and one.assignment is newer


def test_all_who_asked_are_answered_each_for_what_it_asked(
    context: ReplicaContext, make: Make
) -> None:
    one = make(request(1))
    context.now_ns = NOW + OWED_NS
    made = [assignment(request(number)) for number in (2, 3)]
    for each in made:
        one.renew(each)
    one.renew(assignment(None))
    assert one.take_requests() == [(each, each.request) for each in made], "the first waits no more"
    for number in range(OWED_MAX + 1):
        one.renew(assignment(request(number)))
    assert asked(one) == [request(number) for number in range(1, OWED_MAX + 1)]


def test_a_config_that_the_log_does_not_take_is_tried_again(
    context: ReplicaContext, make: Make
) -> None:
    one, replica = make(None), Runner()
    one.propose_config(b"config", replica)
    assert one.config_refused, "nobody leads"
    assert context.queue.take() == {"S-1": replica}


def test_another_group_and_another_server_are_never_followed(
    context: ReplicaContext, make: Make
) -> None:
    one = make(None)
    with pytest.raises(AssertionError, match="another group"):
        one.renew(assignment(None, group="S-2"))
    with pytest.raises(AssertionError, match="others"):
        Assigned(context, assignment(None, members=("b",)), one.group)
