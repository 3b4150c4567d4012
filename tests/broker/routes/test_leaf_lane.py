"""Messages of a hub: the loops take what may pass and leave the rest to the steps, which comes to
the same as steps alone."""

import pytest

from jsctl.broker.accel.choice import Twin, interpreted
from jsctl.broker.accounts.leaf_guard import LeafGuard, Subjects
from jsctl.broker.interest.targets import LeafLink
from jsctl.broker.leafnodes.lane import LeafLane
from jsctl.broker.protocol.ops import Interest, NoInterest, Routed, RouteOp
from jsctl.broker.protocol.route import LeafParser
from jsctl.broker.routing.leafs import LeafRouting
from tests.support.lane_sides import Side
from tests.support.lane_tables import TWINS

ROUTED = (Routed, Interest, NoInterest)
DENIED = (b"$JS.API.>", b"c.b", b"d.*.no")
SUBJECTS = [b"c.a", b"c.b", b"d.a", b"d.a.no", b"d.a.yes", b"$JS.API.INFO", b"none", b"s.a"]
INPUT = b"".join([b"LMSG %s 1\r\nx\r\n" % subject for subject in SUBJECTS * 3])


class Spoke(Side):
    """What `Side` has, and a hub that may not say everything."""

    def __init__(self, twin: Twin) -> None:
        super().__init__(b"", twin)
        self.routing = LeafRouting(self.router)
        account = self.router.accounts.default
        self.hub = LeafLink(11, 1, account, hub=True, peer="H", cluster=b"H")
        rules = Subjects().but(DENIED)
        self.hub.guard = LeafGuard(rules, rules, rules)
        self.routing.add(self.hub)
        self.parser = LeafParser(2048, 200_000)
        self.lane = LeafLane(self.router, twin.table)
        self.stepped: list[bytes] = []

    def carry_out(self, ops: list[RouteOp]) -> bool:
        self.stepped += [op.subject for op in ops if isinstance(op, Routed)]
        self.routing.take(self.hub, [op for op in ops if isinstance(op, ROUTED)])
        return True

    def seen(self) -> dict[str, object]:
        """What came of the input."""
        return self.outcome(self.publisher()) | {"hub": self.hub.in_messages}


@pytest.mark.parametrize("twin", TWINS)
def test_what_may_pass_is_not_for_the_steps(twin: Twin) -> None:
    steps, loop = Spoke(interpreted()), Spoke(twin)
    steps.carry_out(steps.parser.feed(INPUT))
    loop.lane.feed(loop.hub, loop.parser, INPUT, loop.carry_out)
    assert loop.seen() == steps.seen()
    refused = {subject for subject in SUBJECTS if subject in (b"c.b", b"d.a.no", b"$JS.API.INFO")}
    assert set(loop.stepped) == refused
