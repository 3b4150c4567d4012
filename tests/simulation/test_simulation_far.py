"""Two clusters that are far apart, and a leaf node: see `far`.

Interest is right soon after links are whole, no message comes twice, queue groups are served near
by, nobody is elected because the way is long, and whoever asks the API is answered.
"""

from collections.abc import Callable, Sequence

import pytest

from jsctl.broker.interest.kinds import PeerKind
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.targets import QueueGroup, Subscription
from jsctl.broker.jsapi import forwarded
from jsctl.broker.peers.api_counts import ApiCounts, Lost
from jsctl.broker.peers.items import ApiCount
from jsctl.broker.raft import reads
from jsctl.broker.raft.state import RaftState
from jsctl.broker.routing.gateways import GatewayRouting
from tests.simulation.far_plan import calm, draw_far
from tests.simulation.hunting import drawn, hunt
from tests.simulation.kept import kept
from tests.simulation.outcomes import outcome
from tests.simulation.run import Simulation
from tests.simulation.world import SECOND

Patch = pytest.MonkeyPatch
FIXED = {3: 5, 5: 2}
FOUND = [
    (102, 3),
    (104, 5),
    (105, 5),
    (109, 3),
    (111, 3),
    (117, 3),
    (123, 5),
    (210, 3),
    (216, 3),
    (228, 3),
    (237, 3),
    (73000028, 3),
    (84000065, 5),
    (92000007, 3),
    (95000022, 5),
    (97000008, 3),
]
"""Seeds (seed, servers) that failed once: nobody answered, or several did, or interest was wrong
for too long."""
HUNTED = 10
FOUNDED_NS = 4 * SECOND


@pytest.mark.parametrize(
    ("seed", "servers"),
    [(seed, servers) for servers, count in FIXED.items() for seed in range(count)],
)
def test_fixed_seeds(seed: int, servers: int) -> None:
    assert not outcome(draw_far(seed, servers)).failure


@pytest.mark.parametrize(("seed", "servers"), kept(FOUND, 6))
def test_seeds_that_failed_once(seed: int, servers: int) -> None:
    assert not outcome(draw_far(seed, servers)).failure


@pytest.mark.parametrize("far_ms", [pytest.param(25, marks=pytest.mark.mutants), 75])
def test_a_long_way_makes_no_elections(far_ms: int) -> None:
    run = Simulation(calm(1, far_ms))
    before: dict[str, int] = {}

    def look() -> None:
        before.update({name: len(one.leaders) for name, one in run.checker.groups.items()})

    run.world.at(FOUNDED_NS, look)
    run.run()
    assert set(before.values()) == {1}
    assert before == {name: len(one.leaders) for name, one in run.checker.groups.items()}
    assert run.checker.acknowledged > 200 and run.hub.delivered > 100


def test_runs_are_busy() -> None:
    runs = [outcome(draw_far(seed, 3)) for seed in range(3)]
    assert sum(run.heard for run in runs) > 10_000
    assert sum(run.answers for run in runs) > 300
    assert sum(run.acknowledged for run in runs) > 200


def _far_members_are_asked_first(patch: Patch) -> None:
    begin = QueueGroup.__init__

    def hasty(self: QueueGroup, members: Sequence[Subscription]) -> None:
        begin(self, members)
        far = [one for one in self.last if isinstance(one.target, GatewayLink)]
        if far:
            self.local, self.remote, self.last, self.total = [], [], far, 0

    patch.setattr(QueueGroup, "__init__", hasty)


def _what_comes_by_routes_goes_on_to_other_clusters(patch: Patch) -> None:
    def reaches(self: PeerKind, other: PeerKind) -> bool:
        return right(self, other) or (self.name, other.name) == ("route", "gateway")

    right = PeerKind.reaches
    patch.setattr(PeerKind, "reaches", reaches)


def _one_connection_is_told_of_interest(patch: Patch) -> None:
    tell = GatewayRouting.changed

    def lazy(self: GatewayRouting, sub: Subscription, step: int) -> None:
        everybody, self.inbound = self.inbound, dict(list(self.inbound.items())[:1])
        tell(self, sub, step)
        self.inbound = everybody

    patch.setattr(GatewayRouting, "changed", lazy)


def _what_a_lost_connection_told_counts_on(patch: Patch) -> None:
    patch.setattr(GatewayRouting, "_forget", lambda self, sub: None)


def _lost_words_are_not_missed(patch: Patch) -> None:
    def came(self: ApiCounts, peer: str, boot: int, count: ApiCount) -> Lost:
        return Lost(theirs=False, mine=False)

    patch.setattr(ApiCounts, "came", came)


def _reads_wait_for_who_has_left(patch: Patch) -> None:
    def waiting(state: RaftState) -> None:
        if len(state.members.voters) > 1:
            release(state)

    release = reads.release
    patch.setattr(reads, "release", waiting)


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize(
    "plant",
    [
        _far_members_are_asked_first,
        _what_comes_by_routes_goes_on_to_other_clusters,
        _one_connection_is_told_of_interest,
        _what_a_lost_connection_told_counts_on,
    ],
)
def test_interest_that_is_wrong_is_found(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_far, 0, HUNTED), monkeypatch)


def _nobody_answers_for_others(patch: Patch) -> None:
    """Without the last resort, which tells that nobody answered."""
    patch.setattr(forwarded, "ANSWERED_NS", 60 * SECOND)


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize(
    ("plant", "first"), [(_lost_words_are_not_missed, 226), (_reads_wait_for_who_has_left, 459)]
)
def test_a_request_without_an_answer_is_found(
    plant: Callable[[Patch], None], first: int, monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_far, first, HUNTED), monkeypatch, around=_nobody_answers_for_others)
