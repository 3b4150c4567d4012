"""This server's part in the meta group: it founds or joins it, follows it, and leaves for good.

Until there is a meta group that this server belongs to there is no replica of it either. One that
an operator removed keeps its data and takes part in nothing any more.
"""

from collections.abc import Callable

from jsctl.broker.assets.assets import Assets
from jsctl.broker.assets.cluster_view import ClusterView
from jsctl.broker.assets.lost_log import REMEDY
from jsctl.broker.assets.meta.bootstrap import Bootstrap, Seen, conflict, hopeless
from jsctl.broker.assets.meta.group_file import (
    META_DIRECTORY,
    META_GROUP,
    is_evicted,
    read_founding,
    write_evicted,
    write_founding,
)
from jsctl.broker.assets.meta.replica import MetaReplica
from jsctl.broker.assets.meta.taking_up import left_over
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.errors import DiskFull
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.peers.items import Founding, MetaProposal
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.raft.types import StandingKind
from jsctl.broker.replication import state_file
from jsctl.broker.replication.group import RaftGroup, Waiter
from jsctl.broker.turn import LogLevel


class MetaMember:
    """See the module. `state` is the meta state as applied here, empty before there is any."""

    def __init__(
        self,
        context: ReplicaContext,
        cluster: ClusterView,
        assets: Assets,
        outbox: PeerOutbox,
        state: Meta,
        new_id: Callable[[], str],
    ) -> None:
        self.state = state
        self.founding: Founding | None = None
        """The meta group that this server belongs to."""
        self.replica: MetaReplica | None = None
        """None without a founding."""
        self.bootstrap: Bootstrap | None = None
        """As long as it is open which meta group this server belongs to."""
        self._bare: frozenset[str] = frozenset()
        """Other clusters whose servers have no JetStream, as far as they are known."""
        self._context = context
        self._cluster = cluster
        self._assets = assets
        self._outbox = outbox
        self._new_id = new_id
        self._elsewhere: dict[str, Founding] = {}
        """What peers belong to."""
        self._told_to_go = False
        self._has_room = True
        self._warned: set[str] = set()
        self._taking_up: int | None = None
        """Behind which entry all is assigned again that a lost log named."""

    # Start

    def start(self, now_ns: int) -> None:
        """Take up what is on the disk; without any, begin to found or to join."""
        assert self.replica is None and self.bootstrap is None
        if is_evicted(self._context.disk):
            self._evict()
            return
        founding = read_founding(self._context.disk)
        if founding is not None:
            self._take_part(founding)
            return
        options = self._cluster.options
        self.bootstrap = Bootstrap(
            options.me,
            options.life,
            options.clustered,
            options.promised,
            now_ns,
            options.other_clusters,
        )
        self.found(now_ns)

    def found(self, now_ns: int) -> None:
        """Found a group or join one, as soon as that may be decided."""
        assert self.bootstrap is not None
        cluster = self._cluster
        seen = [
            Seen(
                peer,
                news.facts.jetstream,
                self._elsewhere.get(peer),
                news.facts.incarnation,
                news.facts.cluster,
            )
            for peer, news in cluster.servers.items()
            if cluster.liveness.is_up(peer)
        ]
        founding = self.bootstrap.decide(seen, self._new_id(), now_ns, self._bare)
        if founding is None:
            return
        if not self._is_noted(lambda: write_founding(self._context.disk, founding)):
            return
        self.bootstrap = None
        self._take_part(founding)
        for peer in cluster.peers_up():
            self._outbox.parcel(peer).foundings.append(founding)

    def know_bare(self, clusters: frozenset[str]) -> None:
        """Which other clusters are known to be of servers without JetStream: none of them founds a
        meta group that is to be waited for."""
        self._bare = clusters

    def _is_noted(self, write: Callable[[], None]) -> bool:
        """Write what this server belongs to from now on. False: the disk has no room for it, and
        it is decided anew in a moment."""
        try:
            write()
        except DiskFull as error:
            if self._has_room:
                self._context.log(LogLevel.ERROR, f"JetStream waits for room on the disk: {error}")
            self._has_room = False
            return False
        self._has_room = True
        return True

    def _take_part(self, founding: Founding) -> None:
        context, starter = self._context, self._assets.starter
        loaded = state_file.load(context.disk, META_DIRECTORY)
        for damage in loaded.damage:
            context.log(LogLevel.ERROR, f"Damaged meta state: {damage}")
        raft = starter.start(
            META_GROUP.encode(),
            loaded.state,
            peers=founding.members,
            founders=founding.members,
            life=founding.life_of(context.me),
            volatile=False,
            damaged=bool(loaded.damage),
            salvage=True,
        )
        self.founding = founding
        self.replica = MetaReplica(context, self.state, self._assets, raft, loaded, self._cluster)
        context.groups.add(self.replica.group)
        if raft.standing.kind is StandingKind.WHOLE:
            starter.found_meta(raft.term, raft.last_index)
        else:
            # What it lacks may have named groups whose records must not be forgotten meanwhile.
            starter.doubt()
            if not self._cluster.options.clustered and not starter.lost:
                text = f"The state of what there is on this server is lost; {REMEDY}"
                context.log(LogLevel.ERROR, text)
        self.replica.caught_up()

    # What it is now

    @property
    def takes_part(self) -> bool:
        """Whether this server takes part in a meta group."""
        return self.replica is not None and not self._cluster.removed

    @property
    def leading(self) -> bool:
        """Whether management requests are decided on here."""
        return self.replica is not None and self.replica.leading

    @property
    def group(self) -> RaftGroup:
        """The group; only where there is one."""
        assert self.replica is not None, "this server belongs to no meta group"
        return self.replica.group

    def propose(self, entries: list[bytes], waiter: Waiter | None) -> bool:
        """Put entries into the meta log; False when this server does not lead."""
        return self.replica is not None and self.replica.propose(entries, waiter)

    def submit(self, entries: list[bytes]) -> None:
        """Have entries proposed by whoever leads; dropped when nobody does."""
        if self.leading:
            self.propose(entries, None)
            return
        leader = self._cluster.leader_of(META_GROUP)
        if leader and leader != self._context.me:
            self._outbox.parcel(leader).proposals.append(MetaProposal(entries))

    def take_up(self) -> None:
        """Have assigned again what a lost log named and the disk has; once, when that may be
        decided here. Groups of it are in doubt, as long as the loss is not settled."""
        written = self._assets.written
        if written.all_taken_up or not self.leading:
            return
        if self._taking_up is None:
            self._taking_up = self.group.raft.last_index
            for entry in left_over(self._context, self.state):
                self.propose([entry], None)
                self._taking_up = self.group.raft.last_index
        written.all_taken_up = self.group.raft.applied >= self._taking_up

    # Other groups

    def is_foreign(self, peer: str) -> bool:
        """Whether a server belongs to another meta group than this one."""
        theirs, mine = self._elsewhere.get(peer), self.founding
        return theirs is not None and mine is not None and theirs.meta_id != mine.meta_id

    def heard(self, peer: str, founding: Founding) -> None:
        """A peer says which meta group it belongs to."""
        self._elsewhere[peer] = founding
        if conflict(self.founding, [Seen(peer, True, founding)]) and peer not in self._warned:
            self._warned.add(peer)
            self._context.log(
                LogLevel.ERROR,
                f"Peer {peer} belongs to another JetStream cluster (both were founded apart);"
                " empty the store of one side to join it to the other",
            )

    def give_up_founding(self) -> None:
        """Follow the others when the group that this server takes part in came to nothing."""
        if self.founding is None or not self.takes_part or self.group.raft.last_index:
            return
        better = hopeless(self.founding, self._context.me, self._elsewhere)
        if better is None:
            return
        if not self._is_noted(lambda: write_founding(self._context.disk, better)):
            return
        self._context.log(LogLevel.INFO, "Joining the JetStream cluster that the others founded")
        self._context.groups.remove(self.group)
        self._take_part(better)

    # The end of taking part

    def told_to_go(self) -> None:
        """A peer says that an operator removed this server, in its present life."""
        self._told_to_go = True

    def leave_if_told(self) -> None:
        """Take part in nothing any more, once an operator decided so."""
        told = self._told_to_go or (self.replica is not None and self.replica.told_to_go)
        if not told or self._cluster.removed:
            return
        if self._is_noted(lambda: write_evicted(self._context.disk)):
            self._evict()

    def _evict(self) -> None:
        """The rest of the cluster counts without this server."""
        cluster, context = self._cluster, self._context
        assert not cluster.removed
        cluster.removed = True
        self.founding = self.replica = None
        cluster.forget_leader(context.me)
        context.groups.park()
        self._assets.park()
        context.log(
            LogLevel.ERROR,
            "JetStream being DISABLED, our server was removed from the cluster; its data is kept,"
            " empty the store to join again as a new member",
        )
