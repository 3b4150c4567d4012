"""One seeded run of faults and requests, then a healed network that must recover."""

from jsctl.broker.raft.types import (
    AddLearner,
    Promote,
    RaftLimits,
    RemoveMember,
    Role,
    StandingKind,
    Timing,
)
from tests.broker.raft.checks import Violation
from tests.broker.raft.network import Network

STEP_MS = 100.0


class Chaos:
    """A run: `safety` breaks things at random, `liveness` heals and waits."""

    def __init__(
        self,
        seed: int,
        *,
        nodes: int = 3,
        spare: int = 0,
        damage: bool = False,
        timing: Timing | None = None,
    ) -> None:
        names = "abcdefgh"[: nodes + spare]
        limits = RaftLimits(append_bytes_max=400, inflight_bytes_max=1500, committed_entries_max=5)
        timing = timing or Timing(quiet_ticks=(0, 4, 40)[seed % 3])
        self.net = Network(seed, names, names[:nodes], timing=timing, limits=limits)
        self.random = self.net.random
        self.members_change = spare > 0
        self.with_damage = damage
        self.proposals = 0
        self.net.loss = self.random.choice([0.0, 0.02, 0.1])
        self.net.duplicates = self.random.choice([0.0, 0.05])
        self.net.slow = self.random.choice([0.0, 0.05, 0.2])
        self.net.sync_ms = self.random.choice([1.0, 10.0, 60.0, 300.0])
        self.trouble = self.random.choice([0.03, 0.1, 0.2])
        """Chance of a fault in a step."""
        self.ambush = self.random.choice([0.0, 0.5])
        """Chance that a new leader is cut off and one of its voters crashes."""
        self.led_term = 0
        self.busy = True
        """Whether clients are active; pauses let groups hibernate."""

    def run(self, seconds: float = 12.0) -> "Chaos":
        """Both phases."""
        self.safety(seconds)
        self.liveness()
        return self

    def safety(self, seconds: float) -> None:
        """Faults and requests at random; the checker watches."""
        net = self.net
        end = net.now + seconds * 1000
        while net.now < end:
            net.run(net.now + STEP_MS)
            if self.random.random() < self.trouble:
                self._fault()
            self._maybe_ambush()
            if self.random.random() < 0.05:
                self.busy = not self.busy
            if self.busy:
                self._requests()
            else:
                self._rare_reads()
            net.check_logs()

    def _fault(self) -> None:
        net, choose = self.net, self.random.choice
        names = list(net.nodes)
        kind = self.random.randrange(7)
        if kind == 0:
            one, other = choose(names), choose(names)
            net.cut.add((one, other))
        elif kind == 1:
            side = {name for name in names if self.random.random() < 0.5}
            net.cut = {(a, b) for a in names for b in names if (a in side) != (b in side)}
        elif kind == 2:
            alone = net.leader()
            if alone is not None:
                net.cut |= {(alone.me, b) for b in names} | {(b, alone.me) for b in names}
        elif kind == 3:
            net.cut = set()
        elif kind == 4:
            busy = net.leader()
            if busy is not None:
                net.hold_up(busy.me, self.random.uniform(60, 2000), self.random.randrange(4))
        else:
            self._crash(choose(names))

    def _maybe_ambush(self) -> None:
        net = self.net
        leader = net.leader()
        if leader is None or leader.term <= self.led_term:
            return
        self.led_term = leader.term
        if self.random.random() < self.ambush:
            others = [name for name in net.nodes if name != leader.me]
            net.cut = {(leader.me, b) for b in others} | {(b, leader.me) for b in others}
            self._crash(self.random.choice(others))

    def _crash(self, name: str) -> None:
        net = self.net
        if net.nodes[name].raft is None:
            return
        net.crash(name)
        if self.with_damage and not net.damaged and self.random.random() < 0.5:
            net.damage(name)
        net.at(self.random.choice([20, 300, 2000]), lambda: net.start(name))

    def _requests(self) -> None:
        net = self.net
        for raft in net.leaders():
            for _ in range(self.random.randrange(4)):
                self.proposals += 1
                net.propose(raft, b"%d" % self.proposals)
            if self.random.random() < 0.5:
                net.read(raft)
            if self.random.random() < 0.03:
                raft.transfer(None)
                net.pump(net.nodes[raft.me])
            if self.members_change and self.random.random() < 0.2:
                self._change_members()
        if self.random.random() < 0.1:
            self._compact()

    def _rare_reads(self) -> None:
        for raft in self.net.leaders():
            if self.random.random() < 0.1:
                self.net.read(raft)

    def _change_members(self) -> None:
        raft = self.random.choice(self.net.leaders())
        peer = self.random.choice(list(self.net.nodes))
        if peer in raft.members.learners:
            raft.propose_members(Promote(peer))
        elif peer not in raft.members:
            raft.propose_members(AddLearner(peer))
        elif len(raft.members.voters) > 2:
            raft.propose_members(RemoveMember(peer))
        self.net.pump(self.net.nodes[raft.me])

    def _compact(self) -> None:
        node = self.random.choice(list(self.net.nodes.values()))
        if node.raft is not None and node.raft.applied > node.raft.base_index:
            node.raft.compact(self.random.randint(node.raft.base_index, node.raft.applied))
            self.net.pump(node)

    def liveness(self) -> None:
        """Everything works again: there is a leader, it commits, all members catch up."""
        net = self.net
        net.cut = set()
        net.loss = net.duplicates = net.slow = 0.0
        net.sync_ms = 1.0
        net.run(net.now + 2100)  # Restarts that are already planned.
        for _ in range(150):
            net.run(net.now + STEP_MS)
            leader = net.leader()
            if leader is not None and leader.serving:
                break
        else:
            raise Violation("no leader after everything was healed")
        answered = net.checker.reads_answered
        for _ in range(100):
            leader = net.leader()
            if leader is not None:
                if net.checker.committed[-1][2] != b"last":
                    net.propose(leader, b"last")
                net.read(leader)
            net.run(net.now + STEP_MS)
            if self._settled():
                break
        else:
            raise Violation("members do not catch up after everything was healed")
        if net.checker.reads_answered <= answered:
            raise Violation("reads are not answered after everything was healed")
        net.check_logs()
        self._held_up()

    def _held_up(self) -> None:
        """A leader is too slow for its lease, and leads: who asks it hears, if nobody else does."""
        net = self.net
        for _ in range(4):
            leader = net.leader()
            if leader is None:
                raise Violation("no leader although nothing fails")
            first = net.token + 1
            net.hold_up(leader.me, self.random.uniform(100, 600), 1)
            net.run(net.now + 2000)
            if any(token >= first for token in net.checker.reads):
                raise Violation("a read at a leader that was held up is not answered")

    def _settled(self) -> bool:
        net = self.net
        leader = net.leader()
        if leader is None or leader.role is not Role.LEADER:
            return False
        committed = len(net.checker.committed)
        rafts = [net.nodes[name].raft for name in leader.members.all()]
        return net.checker.committed[-1][2] == b"last" and all(
            raft is not None
            and raft.applied == committed
            and raft.standing.kind == StandingKind.WHOLE
            for raft in rafts
        )
