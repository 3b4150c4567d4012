"""What brokers of a cluster tell each other beside raft messages and API requests: that they are
there, how full they are, which groups they lead, which meta group they belong to."""

from collections.abc import Iterable

from jsctl.broker.assets.cluster_view import ClusterView
from jsctl.broker.assets.introductions import Introductions
from jsctl.broker.assets.meta.member import MetaMember
from jsctl.broker.assets.repair.upkeep import Upkeep
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.work_inquiries import WorkInquiries
from jsctl.broker.errors import ProtocolError
from jsctl.broker.peers.items import Announcement, Eviction, PeerFrame
from jsctl.broker.peers.liveness import LivenessEvent, Restarted, WentDown, WentUp
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.raft import codec
from jsctl.broker.replication.group import LeaderChange
from jsctl.broker.replication.transfers import Transfers
from jsctl.broker.turn import LogLevel

NEWS_NS = 1_000_000_000


class PeerExchange:
    """One server's side of it. Times in ns."""

    def __init__(
        self,
        context: ReplicaContext,
        cluster: ClusterView,
        meta: MetaMember,
        transfers: Transfers,
        upkeep: Upkeep,
        introductions: Introductions,
        inquiries: WorkInquiries,
        outbox: PeerOutbox,
    ) -> None:
        self._context = context
        self._cluster = cluster
        self._meta = meta
        self._transfers = transfers
        self._upkeep = upkeep
        self._introductions = introductions
        self._inquiries = inquiries
        self._outbox = outbox
        self._news_due_ns = 0

    # Who is there

    def linked(self, peer: str) -> None:
        """A connection to a broker is there. One that was heard before there was a way to it, as in
        other clusters, has not been told what is told to whoever comes up."""
        self._cluster.liveness.linked(peer, self._context.now_ns)
        if self._cluster.liveness.is_up(peer):
            self._greet(peer)

    def unlinked(self, peer: str) -> None:
        """The last connection to a broker closed."""
        self._live(self._cluster.liveness.unlinked(peer, self._context.now_ns))

    def cut_off(self, peer: str) -> None:
        """There is no way to a broker of another cluster any more; it may live."""
        self._cluster.liveness.cut_off(peer)

    def _live(self, events: Iterable[LivenessEvent]) -> None:
        groups = self._context.groups
        for event in events:
            if isinstance(event, WentUp):
                groups.peer_up(event.peer)
                self._upkeep.repairs.came_up(event.peer)
                self._greet(event.peer)
            elif isinstance(event, WentDown):
                groups.peer_down(event.peer)
            elif isinstance(event, Restarted):
                self._cluster.forget_leader(event.peer)
                if event.incarnation_changed:
                    text = f"Peer {event.peer} came back with another disk"
                    self._context.log(LogLevel.WARNING, text)

    def _greet(self, peer: str) -> None:
        parcel, cluster = self._outbox.parcel(peer), self._cluster
        # It must not learn from a later frame that this process is a new one: what it knows of the
        # old one is forgotten then, and what is told here with it.
        parcel.heartbeat = cluster.liveness.beat(peer, self._context.now_ns)
        parcel.news.append(cluster.own_news())
        parcel.damaged.append(cluster.own_damage())
        parcel.rooms.append(cluster.own_room())
        if self._meta.founding is not None:
            parcel.foundings.append(self._meta.founding)
        self._tell_what_is_led(peer)

    def interrupted(self, peer: str) -> None:
        """Something that was on its way to a broker may be lost. The rest of it is said again
        anyway, or asked for; what this one leads was said once."""
        if self._cluster.liveness.is_up(peer):
            self._tell_what_is_led(peer)

    def _tell_what_is_led(self, peer: str) -> None:
        self._outbox.parcel(peer).announcements.extend(
            known for known in self._cluster.leaders.values() if known.leader == self._context.me
        )

    # What they say

    def receive(self, frame: PeerFrame, now_ns: int) -> bool:
        """A frame of another broker. Raises ProtocolError when raft messages do not decode.

        Whether there was more in it than what replicated groups say to each other, and that the
        broker goes on to live.
        """
        peer, liveness = frame.sender, self._cluster.liveness
        routine = frame.is_routine
        more = not routine
        if frame.heartbeat is not None:
            more = more or not liveness.is_routine(peer, frame.heartbeat)
            self._live(liveness.heard(peer, frame.heartbeat, now_ns))
        if not routine:
            self._hear_news(frame)
        if self._meta.takes_part and not self._meta.is_foreign(peer):
            self._step(frame)
        if not routine:
            self._hear_rest(frame, now_ns)
        return more

    def _hear_rest(self, frame: PeerFrame, now_ns: int) -> None:
        """What is told behind what groups say."""
        for chunk in frame.chunks:
            self._transfers.received(frame.sender, chunk)
        for ack in frame.acks:
            self._transfers.acked(frame.sender, ack, now_ns)
        self._upkeep.receive(frame)
        self._inquiries.receive(frame)
        self._introductions.receive(frame)
        for proposal in frame.proposals:
            self._meta.submit(proposal.entries)

    def _hear_news(self, frame: PeerFrame) -> None:
        """What is told before that."""
        cluster = self._cluster
        for news in frame.news:
            cluster.servers[frame.sender] = news
            if cluster.is_removed(news.facts):
                told = Eviction(news.facts.incarnation)
                self._outbox.parcel(frame.sender).evictions.append(told)
        for damaged in frame.damaged:
            cluster.hear_damage(frame.sender, damaged)
        for room in frame.rooms:
            cluster.hear_room(frame.sender, room)
        if any(one.life == cluster.options.life for one in frame.evictions):
            self._meta.told_to_go()
        for founding in frame.foundings:
            self._meta.heard(frame.sender, founding)
        for known in frame.announcements:
            cluster.learn_leader(known)

    def _step(self, frame: PeerFrame) -> None:
        for batch in frame.raft:
            try:
                messages = codec.decode_messages(*batch.messages)
            except ValueError as error:
                raise ProtocolError(f"raft messages of {frame.sender}: {error}") from error
            self._context.groups.step(batch.group, messages)

    # What this server says

    def tick(self, now_ns: int) -> None:
        """Heartbeats and news that are due, and peers that are not heard any more."""
        liveness = self._cluster.liveness
        self._live(liveness.tick(now_ns))
        for peer, beat in liveness.due(now_ns):
            self._outbox.parcel(peer).heartbeat = beat
        if now_ns >= self._news_due_ns:
            self._news_due_ns = now_ns + NEWS_NS
            self._send_news()

    def _send_news(self) -> None:
        peers = self._cluster.peers_up()
        if not peers:
            return
        news, founding = self._cluster.own_news(), self._meta.founding
        damaged, room = self._cluster.own_damage(), self._cluster.own_room()
        for peer in peers:
            parcel = self._outbox.parcel(peer)
            parcel.news.append(news)
            parcel.damaged.append(damaged)
            parcel.rooms.append(room)
            if founding is not None:
                parcel.foundings.append(founding)

    def leader_changed(self, change: LeaderChange) -> None:
        """A group has another leader as seen here: note it, and tell the others of this one."""
        group, cluster = change.group, self._cluster
        known = Announcement(group.name, change.term, change.leader)
        if change.leader == self._context.me:
            cluster.leaders[group.name] = known
            for peer in cluster.peers_up():
                self._outbox.parcel(peer).announcements.append(known)
        elif change.leader:
            cluster.learn_leader(known)

    @property
    def keeps_awake(self) -> bool:
        """Whether heartbeats make a turn again and again."""
        return self._cluster.liveness.has_ways

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        due_ns = self._cluster.liveness.deadline_ns()
        if not self._cluster.options.clustered:
            return due_ns
        return self._news_due_ns if due_ns is None else min(due_ns, self._news_due_ns)
