"""Fans: where the messages of an account's subjects go, as the lane's loop is told.

One `Fans` serves all publishers of a kind that may publish the same in an account. It answers the
loop's questions from the account's sublist, forgets everything when that changes, and passes on
what comes out. Plans that need a look at each message (limits and filters of subscriptions, ways
into other accounts, members of queue groups at other servers) are not for the loop.
"""

from collections.abc import Callable

from jsctl.broker.accel.contract import (
    LEGS_MAX,
    MISS_COST,
    STOP,
    Chunk,
    Leg,
    Member,
    RouteEach,
    TableType,
)
from jsctl.broker.interest.kinds import PeerKind
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import (
    AnyLink,
    ClientPeer,
    LeafLink,
    Namespace,
    QueueGroup,
    RouteLink,
    Sink,
    SublistResult,
    Subscription,
)
from jsctl.broker.routing.concerned import concerns
from jsctl.broker.routing.delivery import Deliverer, prefix_of

WORTH = 8
RESTS = 16
"""Where subscriptions change so often that fewer messages than these make use of what was told,
telling costs more than the steps do: the loop pauses for some calls."""

May = Callable[[Outbound, bytes], int]
"""Whether somebody may publish on a subject: how many of its tokens, from the first on, decide on
that together with their number, 0 if he may not. Who shares fans shares the answers."""

_Key = tuple[tuple[int, ...], ...]


class Fans:
    """See the module. `table` is given whom to ask, and keeps what it is told."""

    def __init__(
        self,
        table: TableType,
        delivery: Deliverer,
        account: Namespace,
        kind: PeerKind,
        may: May,
        *,
        words: tuple[bytes, bytes],
        stops: tuple[bytes, ...],
        line_max: int,
        payload_max: int,
    ) -> None:
        """`words` are what canonical messages begin with, without and with headers."""
        self._table = table(*words, stops, line_max, payload_max, self._fan_of)
        self._delivery = delivery
        self._account = account
        self._kind = kind
        self._may = may
        self._generation = account.sublist.generation
        self._undecided = False
        """Something that was told holds for one call only."""
        self._served = self._resting = 0
        """Messages since it forgot, and calls in which it leaves everything to the steps."""
        self._targets: dict[object, int] = {}
        self._by_plan: dict[SublistResult, int] = {}
        self._by_targets: dict[_Key, int] = {}

    def route(
        self, data: bytes, position: int, origin: Outbound, flags: int, budget: int
    ) -> tuple[int, int, int, int]:
        """Pass on messages from `position` on: the first parts of `contract.Passed`."""
        table, delivery = self._table, self._delivery
        if (
            self._generation != self._account.sublist.generation
            or self._resting
            or self._undecided
            or table.full
        ) and not self._goes_on():
            return position, 0, 0, 0
        before = delivery.lot
        try:
            position, count, size, cost, lot, outputs = table.route(
                data, position, origin, flags, budget, before
            )
        except BaseException:
            self._forget()
            raise
        self._served += count
        if lot != before:
            delivery.lot = lot
        if outputs is not None:
            delivery.put(origin, self._account, outputs)
        return position, count, size, cost

    def route_each(self, each: RouteEach, chunks: list[Chunk]) -> list[int]:
        """Pass on a message of each of several publishers, as far as `each` takes them: their
        sizes. Nobody whom they may reach is congested, so that no publisher is to be noted."""
        if not self._goes_on():
            return []
        delivery = self._delivery
        before = delivery.lot
        try:
            sizes, lot, outputs = each(self._table, chunks, before)
        except Exception:  # noqa: BLE001 (nothing was taken: who meets it again, alone, is told)
            self._forget()
            return []
        self._served += len(sizes)
        if lot != before:
            delivery.lot = lot
        if outputs is not None:
            delivery.put(chunks[0][0], self._account, outputs)
        return sizes

    def _goes_on(self) -> bool:
        """Forget what does not hold any more; False while the loop pauses."""
        is_stale = self._generation != self._account.sublist.generation
        if is_stale or self._table.full or self._undecided:
            self._resting = RESTS if is_stale and self._served < WORTH else 0
            self._forget()
        if self._resting:
            self._resting -= 1
            return False
        return True

    def _forget(self) -> None:
        self._table.clear()
        self._targets.clear()
        self._by_plan.clear()
        self._by_targets.clear()
        self._generation = self._account.sublist.generation
        self._undecided = False
        self._served = 0

    def _fan_of(self, origin: Outbound, subject: bytes) -> tuple[int, int, int]:
        """The number of a subject's fan, what it cost to find it, and whom else it is for."""
        may = self._may(origin, subject)
        if not may:
            return STOP, MISS_COST, 0
        sublist = self._account.sublist
        plan = sublist.match(subject)
        number = None if plan.leafs else self._by_plan.get(plan)
        if number is None:
            plain = self._is_plain(plan, origin, subject)
            number = self._number(plan, origin, subject) if plain else STOP
            self._by_plan[plan] = number
        depth = sublist.deciding(subject)
        if plan.leafs and depth:
            may = max([may, *[_deciding(link, subject) for link in plan.links]])
        return number, plan.built * MISS_COST, max(depth, may) if depth else 0

    def _is_plain(self, plan: SublistResult, origin: Outbound, subject: bytes) -> bool:
        if plan.bridges or plan.shadows or plan.returns:
            return False
        if plan.leafs and not self._are_plain(plan, subject):
            return False
        if origin.cluster and any([isinstance(one, RouteLink) for one in plan.links]):
            # The other server is told where it comes from, which takes another verb.
            return False
        groups = plan.groups if self._kind.draws else []
        members = sum(len(one.local) for one in groups)
        if len(plan.clients) + len(plan.links) + members > LEGS_MAX or len(plan.sinks) > LEGS_MAX:
            return False
        return all([is_plain(sub) for sub, _ in plan.clients]) and all(map(_is_local, groups))

    def _are_plain(self, plan: SublistResult, subject: bytes) -> bool:
        """Whether nothing is to be noted of what goes to leaf nodes and other clusters."""
        for link in plan.links:
            if link.takes_replies_of(self._kind, subject):
                return False
            if link.notes_replies(self._account.name):
                return False
        return True

    def _number(self, plan: SublistResult, origin: Outbound, subject: bytes) -> int:
        """The number of a plan's fan; plans with the same targets share one."""
        links = [one for one in plan.links if concerns(one, origin, self._kind, subject)]
        groups = plan.groups if self._kind.draws else []
        key = (
            tuple([id(sub) for sub, _ in plan.clients]),
            tuple(map(id, plan.sinks)),
            tuple(map(id, links)),
            *[tuple(map(id, one.local)) for one in groups],
        )
        number = self._by_targets.get(key)
        if groups and not self._delivery.lot:
            # The call at hand has its state of the draws already.
            self._delivery.begin_draws()
            self._undecided = True
            return STOP
        if number is None:
            legs = [self._leg(sub, session) for sub, session in plan.clients]
            legs += map(self._link, links)
            counted = tuple([sub for sub, _ in plan.clients])
            sinks = tuple(map(self._target, plan.sinks))
            members = tuple(map(self._members, groups))
            number = self._table.fan(tuple(legs), counted, sinks, members)
            self._by_targets[key] = number
        return number

    def _target(self, peer: Outbound | Sink) -> int:
        number = self._targets.get(peer)
        if number is None:
            number = self._targets[peer] = self._table.target(peer)
        return number

    def _leg(self, sub: Subscription, session: ClientPeer) -> Leg:
        kind = session.kind
        return (self._target(session), session.headers, kind.verb, kind.header_verb, sub.infix)

    def _link(self, link: AnyLink) -> Leg:
        prefix, kind = prefix_of(link, self._account, b""), link.kind
        return (self._target(link), True, kind.verb + prefix, kind.header_verb + prefix, b" ")

    def _members(self, group: QueueGroup) -> tuple[Member, ...]:
        return tuple(
            [
                (*self._leg(sub, sub.target), (sub,))
                for sub in group.local
                if isinstance(sub.target, ClientPeer)
            ]
        )


def is_plain(sub: Subscription) -> bool:
    """Whether a client's subscription takes all that it matches, with nothing to note."""
    target = sub.target
    if not isinstance(target, ClientPeer) or target.closing or target.tracks_replies:
        return False
    return not sub.maximum and sub.denied is None


def _is_local(group: QueueGroup) -> bool:
    return bool(group.local) and not group.remote and all(map(is_plain, group.local))


def _deciding(link: AnyLink, subject: bytes) -> int:
    """How many tokens of a subject decide on whether a link may have a message."""
    guard = link.guard if isinstance(link, LeafLink) else None
    return 0 if guard is None else guard.deciding(subject)
