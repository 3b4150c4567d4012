"""What a group wants done, collected since the last time it was asked.

The caller, for each `Ready` in order:

1. hands `truncate_from`, `base`, `append`, `hard_state`, `standing` to its write-ahead log, in
   that order and in one batch (a batch may hold many groups);
2. sends `send` at once, while the batch syncs;
3. once this batch *and all earlier ones* are durable: sends `send_after_sync` and calls
   `persisted(*to_persist)` when that is not None;
4. applies `committed` in order and calls `applied_to`.

A caller that loses a Ready (crash) loses it whole or keeps a prefix of the batches: nothing that
was promised to a peer can be lost that way, because promises travel in `send_after_sync`.
"""

from jsctl.broker.raft.types import (
    Entry,
    Index,
    Members,
    Message,
    PeerId,
    Role,
    Standing,
    Term,
)
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RoleChange:
    """A new role, term or leader of this node."""

    role: Role
    term: Term
    leader: PeerId | None


@dataclass(frozen=True, slots=True)
class Base:
    """Where the log starts: everything up to `index` is in the state machine."""

    index: Index
    term: Term
    members: Members


class Ready:
    """Work for the caller, who owns the lists from then on. False when there is none."""

    __slots__ = (
        "append", "base", "committed", "hard_state", "members", "needs_snapshot", "reads",
        "reads_failed", "role_change", "send", "send_after_sync", "serving", "standing",
        "to_persist", "truncate_from", "untold",
    )  # fmt: skip

    def __init__(self) -> None:
        self.append: list[Entry] = []
        self.truncate_from: Index | None = None
        """Drop this index and all behind it, before appending."""
        self.hard_state: tuple[Term, PeerId] | None = None
        """(term, vote); an empty vote is none."""
        self.base: Base | None = None
        self.send: list[Message] = []
        self.send_after_sync: list[Message] = []
        self.committed: list[Entry] = []
        self.role_change: RoleChange | None = None
        self.serving = False
        """A leader's first own entry is committed: it may admit work once that is applied."""
        self.reads: list[tuple[int, Index]] = []
        """(token, index): answer the read once the state machine has applied `index`."""
        self.reads_failed: list[int] = []
        self.needs_snapshot: list[PeerId] = []
        """Peers that need compacted entries; answer `snapshot_sent` or `snapshot_failed`."""
        self.members: Members | None = None
        """The set in effect, when it changed (at append, or back by truncation)."""
        self.standing: Standing | None = None
        """The node's own standing, when it changed; to be kept with the log."""
        self.to_persist: tuple[Index, Term] | None = None
        self.untold = False
        """Peers were not told what is committed, as nobody there waits; `tell` does so."""

    def __bool__(self) -> bool:
        return self is not NOTHING

    def writes(self) -> bool:
        """Whether there is anything for the write-ahead log."""
        return bool(
            self.append
            or self.hard_state is not None
            or self.truncate_from is not None
            or self.base is not None
            or self.standing is not None
        )


NOTHING = Ready()
"""The shared answer of an idle group; never to be changed."""
