"""How groups start: as founders, from the disk, or in doubt; over real logs that end and begin."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from jsctl.broker.raft import codec
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Members, Role, Standing, StandingKind, Timing, VoteRequest
from jsctl.broker.replication.bootstrap import GroupBootstrap
from jsctl.broker.replication.state_file import GroupState
from jsctl.broker.store.wal.log import Wal, WalOptions
from tests.support.sim_disk import SimDisk

KEY = b"S-1"
LIFE, BOOT = 7, 3
ABC = ("a", "b", "c")
OPTIONS = WalOptions(b"1" * 16, 1 << 16)


def state(index: int, term: int = 1, members: tuple[str, ...] = ABC) -> GroupState:
    """What a checkpoint wrote."""
    return GroupState(1, index, term, codec.encode_members(Members(members)), b"")


@dataclass
class Server:
    """One server over several runs of its process."""

    disk: SimDisk = field(default_factory=lambda: SimDisk(random.Random(1)))
    boot: int = BOOT - 1
    wal: Wal = field(init=False)
    founder: GroupBootstrap = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """The process ends without power being lost, and begins again."""
        self.boot += 1
        self.disk.kill()
        self.wal, recovered = Wal.open(self.disk, "log", OPTIONS)
        self.founder = GroupBootstrap("a", LIFE, self.boot, self.wal, Timing(), lambda n: 0)
        self.founder.take(recovered, "")
        self.founder.log_damaged = bool(recovered.damage)

    def sync(self) -> None:
        """What was added to the log becomes durable."""
        batch = self.wal.take_batch()
        if batch is not None:
            batch.run()
            self.wal.done(batch.ticket)

    def start(self, found: GroupState | None = None, **more: Any) -> Raft:
        """Start the group; as its founder unless told otherwise."""
        fields: dict[str, Any] = {"peers": ABC, "founders": ABC, "life": LIFE, "volatile": False}
        raft = self.founder.start(KEY, found, **{**fields, **more})
        self.sync()
        return raft

    def restarted(self, found: GroupState | None = None, **more: Any) -> Raft:
        """The same in another process."""
        self.restart()
        return self.start(found, **more)


def votes(raft: Raft) -> bool:
    """Whether it grants a vote to somebody whose log is long, in a far term."""
    raft.step([VoteRequest("a", "b", 99, 1000, 98)])
    ready = raft.ready()
    return any(getattr(reply, "granted", False) for reply in ready.send_after_sync)


def campaigns(raft: Raft) -> bool:
    """Whether it stands for election when nobody else does."""
    for _ in range(100):
        raft.tick()
    return raft.role is not Role.FOLLOWER


def test_a_founder_in_the_same_life_is_whole() -> None:
    raft = Server().start()
    assert raft.standing.kind is StandingKind.WHOLE and raft.members == Members(ABC)
    assert campaigns(raft) and votes(Server().start())


def test_a_wiped_server_is_in_doubt_neither_votes_nor_stands() -> None:
    for life in (LIFE + 1, None):
        raft = Server().start(life=life)
        assert raft.standing.kind is StandingKind.UNKNOWN and raft.members == Members()
        assert not raft.hard_state_known
        assert not votes(raft) and not campaigns(raft)


def test_doubt_outlives_a_restart() -> None:
    server = Server()
    server.start(life=LIFE + 1)
    raft = server.restarted()
    assert raft.standing.kind is StandingKind.UNKNOWN and not raft.hard_state_known
    assert not votes(raft)


def test_who_joins_later_is_in_doubt_but_never_voted() -> None:
    server = Server()
    raft = server.start(founders=("b", "c"))
    assert raft.standing.kind is StandingKind.UNKNOWN and raft.hard_state_known
    raft = server.restarted(founders=("b", "c"))
    assert raft.standing.kind is StandingKind.UNKNOWN and raft.hard_state_known
    assert not votes(raft)


def test_who_joined_is_not_believed_after_damage_of_the_log() -> None:
    server = Server()
    server.start(founders=("b", "c"))
    server.restart()
    server.founder.log_damaged = True
    assert not server.start(founders=("b", "c")).hard_state_known


def test_damaged_state_is_doubt_even_of_a_founder() -> None:
    assert Server().start(doubt=True).standing.kind is StandingKind.UNKNOWN
    server = Server()
    server.start()
    server.wal.add_entries(KEY, [(1, 1, 0, b"x")])
    server.sync()
    raft = server.restarted(doubt=True)
    assert raft.standing.kind is StandingKind.UNKNOWN and not votes(raft)


@pytest.mark.parametrize("copy", [None, 1, 4], ids=["none", "older", "as the log"])
def test_a_log_that_has_all_behind_the_sound_copy_says_what_the_damaged_one_said(
    copy: int | None,
) -> None:
    base = 4 if copy == 4 else 0
    server = logged(*range(base + 1, 8), base=base)
    raft = server.restarted(state(copy) if copy is not None else None, damaged=True)
    assert raft.standing.kind is StandingKind.WHOLE
    assert (raft.base_index, raft.last_index) == (copy or 0, 7) and not raft.salvageable


@pytest.mark.parametrize("copy", [None, 3], ids=["none", "older"])
def test_a_log_that_let_go_of_what_the_damaged_copy_had_is_doubt(copy: int | None) -> None:
    server = logged(*range(5, 8), base=4)
    found = state(copy) if copy is not None else None
    raft = server.restarted(found, damaged=True, salvage=True)
    assert raft.standing.kind is StandingKind.UNKNOWN and raft.salvageable and not votes(raft)


def test_a_damaged_state_without_a_log_is_doubt() -> None:
    assert Server().start(damaged=True).standing.kind is StandingKind.UNKNOWN


def test_log_and_vote_come_back() -> None:
    server = Server()
    server.start()
    server.wal.add_vote(KEY, 4, b"c")
    server.wal.add_entries(KEY, [(1, 3, 1, b""), (2, 4, 0, b"x"), (3, 4, 0, b"y")])
    server.sync()
    raft = server.restarted()
    assert raft.standing.kind is StandingKind.WHOLE and raft.members == Members(ABC)
    assert (raft.term, raft.vote, raft.last_index, raft.commit) == (4, "c", 3, 0)
    raft.step([VoteRequest("a", "b", 4, 1000, 4)])
    assert not any(getattr(one, "granted", False) for one in raft.ready().send_after_sync)


def test_a_founder_that_crashed_before_its_first_sync_founds_again() -> None:
    server = Server()
    server.founder.start(KEY, None, peers=ABC, founders=ABC, life=LIFE, volatile=False)
    server.disk.crash()
    assert server.restarted().standing.kind is StandingKind.WHOLE


def logged(*indexes: int, base: int = 0) -> Server:
    """A server whose log has these entries, behind a base."""
    server = Server()
    server.start()
    if base:
        server.wal.add_entries(KEY, [(i, 1, 0, b"x") for i in range(1, base + 1)])
        server.wal.add_base(KEY, base, 1, codec.encode_members(Members(ABC)))
    server.wal.add_entries(KEY, [(index, 1, 0, b"x") for index in indexes])
    server.sync()
    server.restart()
    return server


def test_the_log_goes_on_behind_the_state() -> None:
    raft = logged(1, 2, 3, 4).start(state(2))
    assert raft.standing.kind is StandingKind.WHOLE
    assert (raft.base_index, raft.applied, raft.commit, raft.last_index) == (2, 2, 2, 4)
    raft = logged(4, 5, base=3).start(state(3))
    assert (raft.standing.kind, raft.base_index, raft.last_index) == (StandingKind.WHOLE, 3, 5)
    raft = logged(1, 2).start(state(2))
    assert (raft.standing.kind, raft.base_index, raft.last_index) == (StandingKind.WHOLE, 2, 2)


def test_the_log_goes_on_behind_a_received_state_of_which_it_knew_nothing() -> None:
    server = Server()
    server.start()
    raft = server.restarted(state(15, 2))
    server.wal.add_entries(KEY, [(16, 2, 1, b"x")])
    server.sync()

    raft = server.restarted(state(15, 2))

    assert raft.standing == Standing()
    assert (raft.base_index, raft.last_index) == (15, 16)


def test_entries_in_the_place_of_a_received_state_were_never_committed() -> None:
    server = Server()
    server.start()
    server.wal.add_entries(KEY, [(1, 1, 1, b"a"), (2, 1, 1, b"b"), (3, 1, 1, b"c")])
    server.sync()

    raft = server.restarted(state(2, 5))

    assert (raft.base_index, raft.last_index) == (2, 2)
    server.wal.add_entries(KEY, [(3, 5, 1, b"d")])
    server.sync()
    assert server.restarted(state(2, 5)).log.term_at(3) == 5


def test_a_gap_between_state_and_log_is_doubt() -> None:
    server = logged(8, 9, base=7)
    raft = server.start(state(5))
    assert raft.standing.kind is StandingKind.UNKNOWN and not votes(raft)
    assert (raft.base_index, raft.applied, raft.last_index) == (5, 5, 5)
    server.wal.add_entries(KEY, [(6, 9, 0, b"other")])
    server.sync()
    raft = server.restarted(state(5))
    assert raft.standing.kind is StandingKind.UNKNOWN
    assert (raft.applied, raft.last_index, raft.log.last_term) == (5, 6, 9)


def test_a_log_that_began_later_needs_its_state() -> None:
    raft = logged(8, 9, base=7).start(None)
    assert raft.standing.kind is StandingKind.UNKNOWN
    assert (raft.base_index, raft.applied, raft.last_index) == (0, 0, 0)
    assert not votes(raft)


def test_a_state_whose_log_is_lost_is_doubt() -> None:
    raft = Server().start(state(5))
    assert raft.standing.kind is StandingKind.UNKNOWN and raft.members == Members(ABC)
    assert raft.applied == 5 and not votes(raft) and not campaigns(raft)


def test_a_suspect_log_knows_how_far_it_was_promised() -> None:
    server = logged(1, 2)
    found = server.founder.recovered[KEY]
    found.standing, found.suspect_term, found.suspect_index = "suspect", 1, 9
    raft = server.start()
    assert raft.standing == Standing(StandingKind.SUSPECT, 1, 9)
    assert raft.hard_state_known and not campaigns(raft)


# What only memory holds


def test_memory_is_whole_in_the_run_that_founded() -> None:
    assert Server().start(volatile=True, life=BOOT).standing.kind is StandingKind.WHOLE


def test_memory_is_lost_with_the_process_but_the_vote_is_not() -> None:
    server = Server()
    server.start(volatile=True, life=BOOT)
    server.wal.add_vote(KEY, 4, b"c")
    server.wal.add_entries(KEY, [(1, 4, 0, b"x")])
    server.sync()
    for _ in range(2):
        raft = server.restarted(volatile=True, life=BOOT)
        assert raft.standing.kind is StandingKind.UNKNOWN and raft.hard_state_known
        assert (raft.term, raft.vote, raft.last_index) == (4, "c", 0)
        assert raft.members == Members(ABC)
        assert not campaigns(raft)


def test_memory_of_another_run_without_a_record_is_doubt() -> None:
    raft = Server().start(volatile=True, life=BOOT + 1)
    assert raft.standing.kind is StandingKind.UNKNOWN and not raft.hard_state_known


def test_after_a_loss_in_the_log_not_even_a_founder_is_whole_without_a_record() -> None:
    server = Server()
    server.founder.lost = "part of the log is lost"
    raft = server.start()
    assert raft.standing.kind is StandingKind.UNKNOWN and not raft.hard_state_known
    assert not votes(raft) and not campaigns(raft)
    assert server.restarted().standing.kind is StandingKind.UNKNOWN


def test_a_log_that_is_lost_begins_again_behind_the_state() -> None:
    """Or what is added to it would follow nothing, and the next start would drop it."""
    server = Server()
    server.start(state(5), life=LIFE + 1)
    server.wal.add_entries(KEY, [(6, 2, 0, b"x")])
    server.sync()
    server.restart()
    found = server.founder.recovered[KEY]
    assert (found.base_index, len(found.entries), found.holed) == (5, 1, False)
