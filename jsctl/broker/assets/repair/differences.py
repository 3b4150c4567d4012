"""Where a replica differs from its leader: the first messages that are not the same on both.

Theory of operation. Digests tell that two replicas differ, not in what. So the leader asks the
other one for its messages, from the first on, a portion at a time, as if they were damaged here,
and compares. An answer speaks of an entry of the stream's log, and this replica may be further:

- The same sequence with other bytes differs, whenever that was.
- What the leader has at its entry the other one had to have at an earlier one, so far as it had
  come, as nothing that was removed comes back.
- What the other one has the leader may have removed since. It is asked for once more; if it is
  still there behind the entry of which the leader knew that it was gone, they differ.

What is damaged on either side is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import NamedTuple

from jsctl.broker.assets.repair.agent import ANSWER_NS
from jsctl.broker.assets.repair.range_server import ANSWER_BYTES_AIMED
from jsctl.broker.assets.repair.records import records_of, told_range
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import Difference, StreamReplica
from jsctl.broker.errors import Damaged
from jsctl.broker.peers.items import RangeAnswer, RangeRequest
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

FIRST_TOKEN = 1 << 62
"""Tokens of these questions are not those of repairs."""
TRIES_MAX = 10
"""Questions without an answer, one after the other, until a search is given up."""
OWN_BYTES_MAX = 4 * ANSWER_BYTES_AIMED


class Outcome(NamedTuple):
    """How a search ended: with the first messages that differ, with none that do, or without an
    answer."""

    first: int = 0
    last: int = 0
    is_known: bool = True


@dataclass(slots=True)
class Search:
    """Compares the leader's replica with that of one peer, up to `stop`, or up to the end."""

    replica: StreamReplica
    peer: str
    begin: int
    """All that lies before it is the same."""
    wanted: Callable[[], bool]
    ended: Callable[[Outcome], None]
    stop: int = 0
    until_ns: int = 0
    """When the open question is asked again."""
    token: int = 0
    tries: int = 0
    doubt: tuple[int, int] = (0, 0)
    """A sequence that the leader did not have behind an entry, and the peer behind an earlier
    one."""
    held: RangeAnswer | None = None
    """An answer that speaks of an entry to which this replica has not come."""


@dataclass(slots=True)
class Differences:
    """All searches of this server. `online`: whether a peer can be reached."""

    context: ReplicaContext
    outbox: PeerOutbox
    online: Callable[[str], bool]
    _searches: dict[tuple[str, str, bool], Search] = field(default_factory=dict)
    """By the name of the group, the peer, and whether a part of the messages is compared."""
    _token: int = FIRST_TOKEN

    def look(self, replica: StreamReplica, peer: str) -> None:
        """A peer's digest is not the leader's: find out where they differ first."""
        if (replica.group.name, peer, False) in self._searches:
            return

        def ended(outcome: Outcome) -> None:
            if outcome.first:
                self._found(replica, peer, outcome)

        def wanted() -> bool:
            return peer in replica.different

        self._begin(Search(replica, peer, replica.store.first_seq, wanted, ended))

    def look_between(
        self,
        replica: StreamReplica,
        peer: str,
        bounds: tuple[int, int],
        wanted: Callable[[], bool],
        ended: Callable[[Outcome], None],
    ) -> None:
        """Compare the messages between two sequences, one such search of a peer at a time."""
        self._begin(Search(replica, peer, bounds[0], wanted, ended, bounds[1]))

    def _begin(self, search: Search) -> None:
        self._searches[_place(search)] = search
        self._ask(search)

    def searching(self, group: str) -> bool:
        """Whether more is to be expected of a stream that is compared as a whole."""
        return any(name == group and not part for name, _, part in self._searches)

    def told(self, peer: str, answer: RangeAnswer) -> None:
        """A peer tells what it has."""
        group = self.context.groups.by_key(answer.key)
        if group is None:
            return
        for part in (False, True):
            search = self._searches.get((group.name, peer, part))
            if search is not None and search.token == answer.token:
                search.held = answer
                self._go_on(search)
                return

    def tick(self, now_ns: int) -> None:
        """Go on with what waits, and give up what has no answer."""
        for search in list(self._searches.values()):
            if search.held is not None:
                self._go_on(search)
            elif now_ns >= search.until_ns:
                self._ask(search)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        return min((one.until_ns for one in self._searches.values()), default=None)

    def _ask(self, search: Search) -> None:
        replica, group = search.replica, search.replica.group
        last = min(search.stop or replica.store.last_seq, replica.store.last_seq)
        search.tries += 1
        if search.begin > last:
            self._end(search, Outcome())
            return
        if not search.wanted() or replica.leading is None or search.tries > TRIES_MAX:
            self._end(search, Outcome(is_known=False))
            return
        search.until_ns = self.context.now_ns + ANSWER_NS
        if self.online(search.peer):
            self._token += 1
            search.token = self._token
            request = RangeRequest(group.key, search.token, [(search.begin, last)])
            self.outbox.parcel(search.peer).wanted.append(request)

    def _end(self, search: Search, outcome: Outcome) -> None:
        self._searches.pop(_place(search), None)
        search.ended(outcome)

    def _go_on(self, search: Search) -> None:
        answer, replica = search.held, search.replica
        assert answer is not None, "there is something to go on with"
        if replica.leading is None:
            # What is waited for may never come here, as when the stream is gone.
            self._end(search, Outcome(is_known=False))
            return
        if answer.index > replica.standing_index:
            return
        search.held = None
        if answer.up_to < search.begin:
            # It has nothing there yet, and is asked again after a while; or no replica any more.
            if not answer.index:
                self._end(search, Outcome(is_known=False))
            return
        search.tries = 0
        found = self._compared(search, answer)
        if found is None:
            self._ask(search)
        else:
            self._end(search, Outcome(*found))

    def _compared(self, search: Search, answer: RangeAnswer) -> tuple[int, int] | None:
        """The first range that differs; None: go on at `begin`."""
        store = search.replica.store
        try:
            theirs = records_of(answer.frames)
        except Damaged:
            return None
        own = store.excerpt(search.begin, answer.up_to, OWN_BYTES_MAX)
        mine = records_of(own.frames)
        up_to = min(answer.up_to, own.up_to) if mine else answer.up_to
        skipped = SeqSet(answer.lost)
        for first, last in own.lost.ranges():
            skipped.add_range(first, last)
        seqs = [seq for seq in sorted({*mine, *theirs}) if seq <= up_to and seq not in skipped]
        for seq in seqs:
            if mine.get(seq) == theirs.get(seq):
                continue
            if seq not in mine and not self._is_certain(search, seq, answer.index):
                # Nobody knows yet; ask from here.
                search.begin = seq
                return None
            return seq, last_of_run(seqs, seq, mine, theirs)
        search.begin = up_to + 1
        return None

    @staticmethod
    def _is_certain(search: Search, seq: int, index: int) -> bool:
        """Whether the peer still has what the leader did not have behind an earlier entry."""
        doubted, since = search.doubt
        if doubted == seq and index >= since:
            return True
        if doubted != seq:
            search.doubt = seq, search.replica.standing_index
        return False

    def _found(self, replica: StreamReplica, peer: str, outcome: Outcome) -> None:
        known = replica.different.get(peer)
        if known is None:
            return
        replica.different[peer] = Difference(known.index, outcome.first, outcome.last)
        account, name = replica.key
        text = (
            f"Stream '{account} > {name}': server {peer} has other messages than this leader,"
            f" the first is {told_range(outcome.first, outcome.last)}"
        )
        self.context.log(LogLevel.ERROR, text)


def _place(search: Search) -> tuple[str, str, bool]:
    return search.replica.group.name, search.peer, search.stop > 0


def last_of_run(
    seqs: list[int], first: int, mine: Mapping[int, bytes], theirs: Mapping[int, bytes]
) -> int:
    """The last one of the messages that differ without a break."""
    last = first
    for seq in seqs[seqs.index(first) :]:
        if mine.get(seq) == theirs.get(seq):
            break
        last = seq
    return last
