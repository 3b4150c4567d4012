"""The command language of the transcripts: a group driven by hand, everything that happens in text.

nodes abc [learners=d] [spare=e] [volatile=yes]   new group; spare nodes know no members
log a 1 1 2                        a's log at the start, as terms; before `start`
term a 3 [vote]                    a's term at the start
suspect a FROM | unknown a         damage a stopped node's log
start [a]                          start nodes
crash a                            lose what is not synced
campaign a | propose a x y | read a TOKEN | transfer a [b] | force a
add a d | promote a d | remove a d [forced]
tick a|all N [quick]               N ticks; with `quick`, all else settles after each one
ready a|all | sync a|all | deliver a>b|all | drop a>b|all
settle                             ready, sync and deliver until nothing moves
cut a b [oneway] | heal            links; what is sent over a cut one is dropped
down a b | up a b                  a is told about b's server
compact a N | install a b | install-failed a b
state [a] | progress a | silent COMMAND
"""

from collections.abc import Callable

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.describe import (
    describe_message,
    describe_ready,
    describe_standing,
    describe_state,
)
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import (
    AddLearner,
    Change,
    Entry,
    EntryKind,
    Members,
    Message,
    Promote,
    RemoveMember,
    Standing,
    StandingKind,
)
from tests.broker.raft.network import Image


class Actor:
    """One node on the stage."""

    def __init__(self, name: str, number: int, members: Members) -> None:
        self.name = name
        self.number = number
        self.image = Image(members)
        self.volatile = False
        self.raft: Raft | None = None
        self.writing: list[Ready] = []

    def start(self) -> Raft:
        """Start from the disk; the jitter of a node is a fixed share of the range."""
        image = self.image
        self.raft = Raft(
            self.name,
            members=image.members,
            term=image.term,
            vote=image.vote,
            base_index=image.base_index,
            base_term=image.base_term,
            entries=image.entries,
            applied=image.base_index,
            standing=image.standing,
            hard_state_known=image.hard_state_known,
            volatile=self.volatile,
            jitter=lambda n: self.number * n // 5,
        )
        return self.raft


class Stage:
    """Runs commands; `lines` collects what happens."""

    def __init__(self) -> None:
        self.actors: dict[str, Actor] = {}
        self.mail: list[Message] = []
        self.cuts: set[tuple[str, str]] = set()
        self.lines: list[str] = []
        self.commands: dict[str, Callable[[list[str]], None]] = {
            name.removeprefix("do_").replace("_", "-"): getattr(self, name)
            for name in dir(self)
            if name.startswith("do_")
        }

    def run(self, command: str) -> list[str]:
        """Perform one command; what happened, line by line."""
        self.lines = []
        words = command.split()
        silent = words[0] == "silent"
        words = words[silent:]
        self.commands[words[0]](words[1:])
        return [] if silent else self.lines or ["ok"]

    def raft(self, name: str) -> Raft:
        """A running node."""
        raft = self.actors[name].raft
        assert raft is not None, f"{name} is not running"
        return raft

    def _running(self, name: str = "all") -> list[Actor]:
        if name != "all":
            self.raft(name)
            return [self.actors[name]]
        return [actor for actor in self.actors.values() if actor.raft is not None]

    # -- setting -------------------------------------------------------------------------------

    def do_nodes(self, words: list[str]) -> None:
        options = dict(word.split("=") for word in words[1:])
        members = Members(tuple(words[0]), tuple(options.get("learners", "")))
        names = words[0] + options.get("learners", "") + options.get("spare", "")
        for number, name in enumerate(names):
            self.actors[name] = Actor(name, number, members if name in members else Members())
            self.actors[name].volatile = "volatile" in options

    def do_log(self, words: list[str]) -> None:
        image = self.actors[words[0]].image
        image.entries = [
            Entry(index, int(term), EntryKind.DATA, b"%d.%d" % (int(term), index))
            for index, term in enumerate(words[1:], 1)
        ]
        image.term = image.entries[-1].term

    def do_term(self, words: list[str]) -> None:
        image = self.actors[words[0]].image
        image.term = int(words[1])
        image.vote = words[2] if len(words) > 2 else ""

    def do_suspect(self, words: list[str]) -> None:
        image = self.actors[words[0]].image
        claim = image.entries[-1]
        image.standing = Standing(StandingKind.SUSPECT, claim.term, claim.index)
        del image.entries[int(words[1]) - image.base_index - 1 :]
        self.lines.append(f"{words[0]} {describe_standing(image.standing)}")

    def do_unknown(self, words: list[str]) -> None:
        image = self.actors[words[0]].image
        image.entries = []
        image.base_index = image.base_term = 0
        image.standing = Standing(StandingKind.UNKNOWN)
        image.hard_state_known = False

    def do_start(self, words: list[str]) -> None:
        for name in words or list(self.actors):
            self.actors[name].start()

    def do_crash(self, words: list[str]) -> None:
        actor = self.actors[words[0]]
        actor.raft = None
        actor.writing = []
        self.mail = [m for m in self.mail if words[0] not in (m.to, m.sender)]

    # -- what callers ask ----------------------------------------------------------------------

    def do_campaign(self, words: list[str]) -> None:
        self.raft(words[0]).campaign()

    def do_propose(self, words: list[str]) -> None:
        index = self.raft(words[0]).propose([word.encode() for word in words[1:]])
        self.lines.append("refused" if index is None else f"index {index}")

    def do_read(self, words: list[str]) -> None:
        self.raft(words[0]).read_index(int(words[1]))

    def do_transfer(self, words: list[str]) -> None:
        done = self.raft(words[0]).transfer(words[1] if len(words) > 1 else None)
        self.lines.append("ok" if done else "refused")

    def do_force(self, words: list[str]) -> None:
        self.raft(words[0]).rescue(1)

    def do_add(self, words: list[str]) -> None:
        self._change(words[0], AddLearner(words[1]))

    def do_promote(self, words: list[str]) -> None:
        self._change(words[0], Promote(words[1]))

    def do_remove(self, words: list[str]) -> None:
        self._change(words[0], RemoveMember(words[1], forced="forced" in words))

    def _change(self, name: str, change: Change) -> None:
        raft = self.raft(name)
        reason = raft.refusal(change)
        index = raft.propose_members(change)
        self.lines.append(f"refused: {reason}" if index is None else f"index {index}")

    def do_down(self, words: list[str]) -> None:
        self.raft(words[0]).peer_down(words[1])

    def do_up(self, words: list[str]) -> None:
        self.raft(words[0]).peer_up(words[1])

    def do_compact(self, words: list[str]) -> None:
        self.raft(words[0]).compact(int(words[1]))

    def do_install(self, words: list[str]) -> None:
        leader, peer = self.raft(words[0]), self.raft(words[1])
        index = leader.applied
        term = leader.log.term_at(index)
        assert term is not None
        peer.restore(index, term, leader.membership.at(index))
        leader.snapshot_sent(words[1], index)
        self.lines.append(f"{words[1]} stands at {term}/{index}")

    def do_install_failed(self, words: list[str]) -> None:
        self.raft(words[0]).snapshot_failed(words[1])

    # -- time, disk, network -------------------------------------------------------------------

    def do_tick(self, words: list[str]) -> None:
        for _ in range(int(words[1])):
            for actor in self._running(words[0]):
                self.raft(actor.name).tick()
            if "quick" in words:
                self.do_settle([])

    def do_ready(self, words: list[str]) -> None:
        for actor in self._running(words[0]):
            self._take(actor)

    def _take(self, actor: Actor) -> bool:
        raft = self.raft(actor.name)
        ready = raft.ready()
        if not ready:
            return False
        self.lines += [f"{actor.name}: {line}" for line in describe_ready(ready)]
        self._post(ready.send)
        if ready.committed:
            raft.applied_to(ready.committed[-1].index)
        actor.writing.append(ready)
        return True

    def _post(self, messages: list[Message]) -> None:
        for message in messages:
            lost = (message.sender, message.to) in self.cuts
            known = message.to in self.actors and self.actors[message.to].raft is not None
            suffix = "" if known and not lost else " (lost)"
            self.lines.append(f"{describe_message(message)}{suffix}")
            if not suffix:
                self.mail.append(message)

    def do_sync(self, words: list[str]) -> None:
        for actor in self._running(words[0]):
            self._sync(actor)

    def _sync(self, actor: Actor) -> bool:
        done, actor.writing = actor.writing, []
        for ready in done:
            actor.image.write(ready)
            self._post(ready.send_after_sync)
            if ready.to_persist is not None:
                self.raft(actor.name).persisted(*ready.to_persist)
        return bool(done)

    def _select(self, word: str) -> list[Message]:
        chosen = [m for m in self.mail if word in ("all", f"{m.sender}>{m.to}")]
        self.mail = [m for m in self.mail if m not in chosen]
        return chosen

    def do_deliver(self, words: list[str]) -> None:
        for message in self._select(words[0]):
            self.raft(message.to).step([message])

    def do_drop(self, words: list[str]) -> None:
        self.lines += [f"dropped {describe_message(m)}" for m in self._select(words[0])]

    def do_settle(self, words: list[str]) -> None:
        for _ in range(100):
            moved = [self._take(actor) for actor in self._running()]
            moved += [self._sync(actor) for actor in self._running()]
            if not any(moved) and not self.mail:
                return
            self.do_deliver(["all"])
        raise AssertionError("the group does not settle")

    def do_cut(self, words: list[str]) -> None:
        self.cuts.add((words[0], words[1]))
        if "oneway" not in words:
            self.cuts.add((words[1], words[0]))

    def do_heal(self, words: list[str]) -> None:
        self.cuts = set()

    # -- looking -------------------------------------------------------------------------------

    def do_state(self, words: list[str]) -> None:
        for actor in self._running(words[0] if words else "all"):
            self.lines.append(describe_state(self.raft(actor.name)))

    def do_progress(self, words: list[str]) -> None:
        for p in self.raft(words[0]).progress():
            flags = [
                name for name in ("active", "paused", "snapshot", "learner") if getattr(p, name)
            ]
            self.lines.append(f"{p.peer} match={p.match} next={p.next} {' '.join(flags)}".rstrip())
