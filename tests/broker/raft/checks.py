"""What must hold in every run, whatever the network and the disks do."""

from jsctl.broker.raft.codec import decode_members
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Entry, EntryKind, Members, PeerId


class Violation(AssertionError):
    """A promise of raft was broken."""


Fact = tuple[int, EntryKind, bytes]


class Checker:
    """Collects what was ever committed, led and read, and compares."""

    def __init__(self, members: Members) -> None:
        self.committed: list[Fact] = []
        """Entries 1, 2, ... that some node was told to apply."""
        self.first_members = members
        self.leaders: dict[int, PeerId] = {}
        self.reads: dict[int, int] = {}
        """Token -> commit index that was known when the read was asked for."""
        self.reads_answered = 0

    def elected(self, raft: Raft) -> None:
        """One leader a term, and it has everything that was committed."""
        other = self.leaders.setdefault(raft.term, raft.me)
        if other != raft.me:
            raise Violation(f"{other} and {raft.me} lead in term {raft.term}")
        for index in range(raft.base_index + 1, len(self.committed) + 1):
            if raft.log.term_at(index) != self.committed[index - 1][0]:
                raise Violation(f"leader {raft.me} of term {raft.term} lacks committed {index}")

    def applied(self, node: PeerId, entries: list[Entry], applied: int) -> bool:
        """The committed prefix never changes. True when something new was committed."""
        news = False
        for entry in entries:
            applied += 1
            if entry.index != applied:
                raise Violation(f"{node} applied {entry.index} instead of {applied}")
            fact = (entry.term, entry.kind, entry.data)
            if entry.index == len(self.committed) + 1:
                self.committed.append(fact)
                news = True
            elif entry.index > len(self.committed):
                raise Violation(f"{node} applied {entry.index} before its predecessors")
            elif self.committed[entry.index - 1] != fact:
                raise Violation(f"{node} applied another entry at {entry.index}")
        return news

    def asked(self, token: int) -> None:
        """A read starts: it must see everything that is committed by now."""
        self.reads[token] = len(self.committed)

    def read(self, node: PeerId, token: int, index: int) -> None:
        """A read was answered."""
        self.reads_answered += 1
        if index < self.reads.pop(token):
            raise Violation(f"stale read at {node}")

    def read_failed(self, token: int) -> None:
        """A read has to be asked for elsewhere."""
        del self.reads[token]

    def members_follow_log(self, raft: Raft) -> None:
        """The set in effect is that of the last CONFIG entry in the log."""
        for entry in reversed(raft.log.entries):
            if entry.kind == EntryKind.CONFIG:
                if decode_members(entry.data) != raft.members:
                    raise Violation(f"{raft.me} uses members that are not in its log")
                return

    def logs_match(self, one: Raft, other: Raft) -> None:
        """Same index and term: same entry, and everything before it is the same too."""
        low = max(one.base_index, other.base_index)
        same = min(one.last_index, other.last_index)
        while same > low and one.log.term_at(same) != other.log.term_at(same):
            same -= 1
        if same > low and one.log.slice(low + 1, same) != other.log.slice(low + 1, same):
            raise Violation(f"logs of {one.me} and {other.me} differ below {same}")
