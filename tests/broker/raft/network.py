"""A simulated cluster of one raft group: clocks that drift, a bad network, disks that forget.

One seed, one run. Time is in milliseconds; an event is a function at a time. A crash drops every
write that was not synced (or keeps some of the first ones) and every message that was under way to
or from the process; restarts begin from the disk image.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import (
    WHOLE,
    Entry,
    Members,
    Message,
    PeerId,
    RaftLimits,
    Role,
    Standing,
    StandingKind,
    Timing,
)
from tests.broker.raft.checks import Checker, Violation

TICK_MS = 50.0
EARLY_TICKS = 2
"""So many of the ticks that a server missed come before the messages that waited for it."""


@dataclass
class Image:
    """What a disk durably holds of the group."""

    members: Members
    term: int = 0
    vote: PeerId = ""
    base_index: int = 0
    base_term: int = 0
    entries: list[Entry] = field(default_factory=list)
    standing: Standing = WHOLE
    hard_state_known: bool = True

    def write(self, ready: Ready) -> None:
        """Perform one batch, in the order that `Ready` prescribes."""
        if ready.truncate_from is not None:
            del self.entries[max(0, ready.truncate_from - self.base_index - 1) :]
        if ready.base is not None:
            base = ready.base
            self.entries = [e for e in self.entries if e.index > base.index]
            self.base_index, self.base_term = base.index, base.term
            self.members = base.members
        for entry in ready.append:
            assert entry.index == self.last_index + 1, "gap on disk"
            self.entries.append(entry)
        if ready.hard_state is not None:
            self.term, self.vote = ready.hard_state
        if ready.standing is not None:
            self.standing = ready.standing
            self.hard_state_known = True

    @property
    def last_index(self) -> int:
        """Last index on disk."""
        return self.base_index + len(self.entries)

    def holds(self, index: int, term: int) -> bool:
        """Whether the entry, or a state that includes it, is durable."""
        if index <= self.base_index:
            return True
        return index <= self.last_index and self.entries[index - self.base_index - 1].term == term


class Node:
    """One process (`raft` is None while it is down) and its disk."""

    def __init__(self, name: PeerId, members: Members, rate: float) -> None:
        self.name = name
        self.image = Image(members)
        self.raft: Raft | None = None
        self.incarnation = 0
        self.rate = rate
        self.batches: list[Ready] = []
        self.syncing = 0
        """Batches at the head of `batches` that the running sync covers."""
        self.applied = 0
        self.backlog: list[Message] | None = None
        """Messages that came while the process does not run; None: it runs."""
        self.missed = 0
        """Ticks of that time."""


class Network:
    """All nodes, the links between them, and the clock."""

    def __init__(
        self,
        seed: int,
        names: str,
        voters: str,
        *,
        timing: Timing | None = None,
        limits: RaftLimits | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.members = Members(tuple(voters))
        self.checker = Checker(self.members)
        self.timing = timing or Timing()
        self.limits = limits or RaftLimits()
        self.loss = self.duplicates = self.slow = 0.0
        self.sync_ms = 10.0
        self.cut: set[tuple[PeerId, PeerId]] = set()
        self.damaged: set[PeerId] = set()
        self.links: dict[tuple[PeerId, PeerId], tuple[int, int] | None] = {}
        self.token = 0
        self.nodes = {
            name: Node(
                name,
                self.members if name in voters else Members(),
                self.random.uniform(0.96, 1.04),
            )
            for name in names
        }
        for name in names:
            self.start(name)
        self.at(100, self._watch_links)

    # -- time ----------------------------------------------------------------------------------

    def at(self, delay: float, action: Callable[[], None]) -> None:
        """Run `action` after `delay` ms."""
        self.count += 1
        heapq.heappush(self.events, (self.now + delay, self.count, action))

    def run(self, until: float) -> None:
        """Perform all events up to a time."""
        while self.events and self.events[0][0] <= until:
            self.now, _, action = heapq.heappop(self.events)
            action()
        self.now = until

    # -- processes -----------------------------------------------------------------------------

    def start(self, name: PeerId) -> None:
        """Start a process from its disk."""
        node = self.nodes[name]
        image = node.image
        node.incarnation += 1
        node.applied = image.base_index
        node.raft = Raft(
            name,
            members=image.members,
            term=image.term,
            vote=image.vote,
            base_index=image.base_index,
            base_term=image.base_term,
            entries=image.entries,
            applied=image.base_index,
            standing=image.standing,
            hard_state_known=image.hard_state_known,
            timing=self.timing,
            limits=self.limits,
            jitter=self.random.randrange,
        )
        self.at(self.random.uniform(0, TICK_MS), lambda: self._tick(node, node.incarnation))
        self.pump(node)

    def crash(self, name: PeerId) -> None:
        """Kill a process; of what was not synced, some first batches may survive."""
        node = self.nodes[name]
        for ready in node.batches[: self.random.randint(0, len(node.batches))]:
            if self.random.random() < 0.5:
                break
            node.image.write(ready)
        node.raft = node.backlog = None
        node.batches = []
        node.syncing = 0

    def damage(self, name: PeerId) -> None:
        """Destroy part of a stopped node's log (SUSPECT) or all of it (UNKNOWN)."""
        image = self.nodes[name].image
        self.damaged.add(name)
        if self.random.random() < 0.5 and image.entries:
            claim = image.entries[-1]
            if image.standing.kind == StandingKind.SUSPECT:
                old = image.standing
                image.standing = max(
                    old,
                    Standing(StandingKind.SUSPECT, claim.term, claim.index),
                    key=lambda item: (item.term, item.index),
                )
            elif image.standing.kind == StandingKind.WHOLE:
                image.standing = Standing(StandingKind.SUSPECT, claim.term, claim.index)
            del image.entries[self.random.randrange(len(image.entries)) :]
        else:
            self.nodes[name].image = Image(
                Members(), standing=Standing(StandingKind.UNKNOWN), hard_state_known=False
            )

    def _tick(self, node: Node, incarnation: int) -> None:
        if node.raft is None or node.incarnation != incarnation:
            return
        self.at(TICK_MS * node.rate, lambda: self._tick(node, incarnation))
        if node.backlog is not None:
            node.missed += 1
            return
        node.raft.tick()
        self.pump(node)

    def hold_up(self, name: PeerId, ms: float, reads: int) -> None:
        """A process does not run for so long; clients ask it for `reads` meanwhile."""
        node = self.nodes[name]
        if node.raft is None or node.backlog is not None:
            return
        node.backlog, node.missed = [], 0
        self.at(ms, lambda: self._go_on(node, node.incarnation, reads))

    def _go_on(self, node: Node, incarnation: int, reads: int) -> None:
        """One turn for all that waited: a little of the time, what came in, the rest of it."""
        raft, backlog = node.raft, node.backlog
        if raft is None or backlog is None or node.incarnation != incarnation:
            return
        node.backlog = None
        early = min(node.missed, EARLY_TICKS)
        for _ in range(early):
            raft.tick()
        raft.fell_behind(node.missed - early)
        # Which of the sockets is read first is anybody's guess.
        first = self.random.random() < 0.5
        if not first:
            raft.step(backlog)
        for _ in range(reads):
            self._ask(raft)
        if first:
            raft.step(backlog)
        for _ in range(node.missed - early):
            raft.tick()
        self.pump(node)

    def _watch_links(self) -> None:
        """What a server sees of the others' liveness, delayed by up to 100 ms."""
        for (one, other), seen in [(k, self.links.get(k)) for k in self._pairs()]:
            a, b = self.nodes[one], self.nodes[other]
            if a.backlog is not None:
                continue
            alive = b.raft is not None and not {(one, other), (other, one)} & self.cut
            present = (a.incarnation, b.incarnation) if alive else None
            self.links[one, other] = present
            if a.raft is None or present == seen:
                continue
            if present is None or seen is not None:
                a.raft.peer_down(other)
            if present is not None:
                a.raft.peer_up(other)
            self.pump(a)
        self.at(self.random.uniform(50, 150), self._watch_links)

    def _pairs(self) -> list[tuple[PeerId, PeerId]]:
        return [(a, b) for a in self.nodes for b in self.nodes if a != b]

    # -- messages and disks --------------------------------------------------------------------

    def pump(self, node: Node) -> None:
        """Do what a node wants done."""
        while node.raft is not None and node.backlog is None:
            ready = node.raft.ready()
            if not ready:
                break
            self._observe(node, node.raft, ready)
            for message in ready.send:
                self._post(message)
            if ready.writes():
                node.batches.append(ready)
                self._sync(node)
            else:
                # Even a caller that does not wait for earlier batches must be safe.
                for message in ready.send_after_sync:
                    self._post(message)
            for peer in ready.needs_snapshot:
                self._send_state(node, peer)

    def _observe(self, node: Node, raft: Raft, ready: Ready) -> None:
        checker = self.checker
        change = ready.role_change
        if change is not None and change.role is Role.LEADER:
            checker.elected(raft)
        if ready.base is not None:
            node.applied = max(node.applied, ready.base.index)
        if ready.committed:
            news = checker.applied(node.name, ready.committed, node.applied)
            node.applied = ready.committed[-1].index
            raft.applied_to(node.applied)
            if news:
                self._durable_at_majority(raft, node.applied)
        for token, index in ready.reads:
            checker.read(node.name, token, index)
        for token in ready.reads_failed:
            checker.read_failed(token)
        checker.members_follow_log(raft)

    def _durable_at_majority(self, raft: Raft, index: int) -> None:
        term = self.checker.committed[index - 1][0]
        sets = {raft.membership.at(index).voters}
        for node in self.nodes.values():
            history = node.raft.membership.history if node.raft else []
            sets |= {members.voters for at, members in history if at >= index}
        for voters in sets:
            copies = sum(
                name in self.damaged or self.nodes[name].image.holds(index, term) for name in voters
            )
            if copies > len(voters) // 2:
                return
        raise Violation(f"{raft.me} took {index} as committed without enough copies")

    def _sync(self, node: Node) -> None:
        if not node.syncing and node.batches:
            node.syncing = len(node.batches)
            incarnation = node.incarnation
            delay = self.random.expovariate(1 / self.sync_ms)
            self.at(delay, lambda: self._synced(node, incarnation))

    def _synced(self, node: Node, incarnation: int) -> None:
        if node.incarnation != incarnation or node.raft is None:
            return
        if node.backlog is not None:
            self.at(1, lambda: self._synced(node, incarnation))
            return
        done = node.batches[: node.syncing]
        del node.batches[: node.syncing]
        node.syncing = 0
        for ready in done:
            node.image.write(ready)
            if ready.standing is not None:
                self.damaged.discard(node.name)
            for message in ready.send_after_sync:
                self._post(message)
            if ready.to_persist is not None:
                node.raft.persisted(*ready.to_persist)
        self._sync(node)
        self.pump(node)

    def _post(self, message: Message) -> None:
        if self.random.random() < self.loss:
            return
        copies = 1 + (self.random.random() < self.duplicates)
        ends = (self.nodes[message.sender].incarnation, self.nodes[message.to].incarnation)
        for _ in range(copies):
            delay = self.random.uniform(0.2, 5)
            if self.random.random() < self.slow:
                delay += self.random.expovariate(1 / 200)
            self.at(delay, lambda: self._deliver(message, ends))

    def _deliver(self, message: Message, ends: tuple[int, int]) -> None:
        sender, node = self.nodes[message.sender], self.nodes[message.to]
        if (sender.incarnation, node.incarnation) != ends or sender.raft is None:
            return
        if node.raft is None or (message.sender, message.to) in self.cut:
            return
        if node.backlog is not None:
            node.backlog.append(message)
            return
        node.raft.step([message])
        self.pump(node)

    def _send_state(self, node: Node, peer: PeerId) -> None:
        raft = node.raft
        assert raft is not None
        index = node.applied
        term = raft.log.term_at(index)
        assert term is not None
        members = raft.membership.at(index)
        ends = (node.incarnation, self.nodes[peer].incarnation)

        def arrive() -> None:
            target = self.nodes[peer]
            if node.backlog is not None or target.backlog is not None:
                self.at(1, arrive)
                return
            alive = (node.incarnation, target.incarnation) == ends and node.raft is not None
            if not alive or target.raft is None or (node.name, peer) in self.cut:
                if node.raft is not None and node.incarnation == ends[0]:
                    node.raft.snapshot_failed(peer)
                    self.pump(node)
                return
            if target.raft.role is not Role.LEADER:
                target.raft.restore(index, term, members)
                self.pump(target)
            assert node.raft is not None
            node.raft.snapshot_sent(peer, index)
            self.pump(node)

        self.at(self.random.uniform(5, 100), arrive)

    # -- clients -------------------------------------------------------------------------------

    def leader(self) -> Raft | None:
        """The leader of the highest term among the running nodes."""
        return max(self.leaders(), key=lambda raft: raft.term, default=None)

    def leaders(self) -> list[Raft]:
        """Everyone who runs and believes to lead."""
        running = [node.raft for node in self.nodes.values() if node.backlog is None]
        return [raft for raft in running if raft is not None and raft.role is Role.LEADER]

    def propose(self, raft: Raft, data: bytes) -> None:
        """Propose at one node."""
        raft.propose([data])
        self.pump(self.nodes[raft.me])

    def read(self, raft: Raft) -> None:
        """Start a read at one node."""
        self._ask(raft)
        self.pump(self.nodes[raft.me])

    def _ask(self, raft: Raft) -> None:
        self.token += 1
        self.checker.asked(self.token)
        raft.read_index(self.token)

    def check_logs(self) -> None:
        """Compare all running nodes pair by pair."""
        rafts = [node.raft for node in self.nodes.values() if node.raft]
        for one in rafts:
            for other in rafts:
                if one.me < other.me:
                    self.checker.logs_match(one, other)
