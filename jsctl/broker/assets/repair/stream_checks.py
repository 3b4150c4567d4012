"""Checks of whole streams on demand, and the comparison of replicas that goes on all the time.

The leader asks each replica to read all that it has of the stream on its disk; reports come until
that is done, and what was damaged is repaired or lost for good. Replicas hold the same messages
behind the same entry: each tells the leader digests of some entries now and then. One that differs
where nothing is damaged is told of, and nothing is done about it: who is right nobody can say.
"""

from collections.abc import Callable, Mapping
from dataclasses import field

from jsctl.broker.assets.repair.differences import Differences
from jsctl.broker.assets.repair.repairs import Repairs
from jsctl.broker.assets.repair.scrub_targets import StreamTarget
from jsctl.broker.assets.repair.scrubber import Scrubber
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import Difference, StreamReplica
from jsctl.broker.peers.items import CheckRequest, ReplicaReport
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

REPORT_NS = 200_000_000
SILENT_NS = 2_000_000_000
"""Who has said nothing of its check for so long is asked again."""
COMPARE_NS = 10_000_000_000
DIGEST_BYTES = 20
JOINED_NS = 1_000_000_000
"""Who asks for a check so soon behind another one means the same; later, some of it was read before
he asked."""
STARTED_MAX = 1000
"""Checks that a leader remembers."""


@dataclass(slots=True)
class LocalCheck:
    """The check of a replica on this server. `asker` is a peer id, maybe this server's own."""

    replica: StreamReplica
    asker: str
    token: int
    began_ns: int
    repaired: int


@dataclass(slots=True)
class StreamCheckup:
    """A check of a stream that this server leads, or led."""

    replica: StreamReplica
    token: int
    began_ns: int
    reports: dict[str, ReplicaReport | None]
    """What each peer said last."""
    heard_ns: dict[str, int] = field(default_factory=dict)
    """When that was."""

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to come."""
        return all(one is not None and one.done for one in self.reports.values())


class StreamChecks:
    """See the module. `online`: whether a peer can be reached."""

    def __init__(
        self,
        context: ReplicaContext,
        outbox: PeerOutbox,
        scrubber: Scrubber,
        repairs: Repairs,
        online: Callable[[str], bool],
        streams: Mapping[tuple[str, str], StreamReplica],
    ) -> None:
        self.checkups: dict[str, StreamCheckup] = {}
        """By the name of the group."""
        self._context = context
        self._outbox = outbox
        self._scrubber = scrubber
        self._repairs = repairs
        self._online = online
        self._streams = streams
        self.differences = Differences(context, outbox, online)
        self._local: dict[str, LocalCheck] = {}
        self._compared: dict[str, int] = {}
        self._report_ns = 0
        self._compare_ns = 0

    # At the leader

    def start(self, replica: StreamReplica) -> StreamCheckup:
        """Begin a check, or return one that has just begun."""
        name, now_ns = replica.group.name, self._context.now_ns
        known = self.checkups.pop(name, None)
        if known is None or known.is_done or now_ns - known.began_ns >= JOINED_NS:
            peers = replica.group.raft.members.all()
            known = StreamCheckup(replica, now_ns, now_ns, dict.fromkeys(peers))
            while len(self.checkups) >= STARTED_MAX:
                del self.checkups[next(iter(self.checkups))]
            self._ask(known)
        self.checkups[name] = known
        return known

    def _ask(self, checkup: StreamCheckup) -> None:
        group = checkup.replica.group
        request = CheckRequest(group.key, checkup.token)
        silent_ns = self._context.now_ns - SILENT_NS
        for peer, report in checkup.reports.items():
            # A server that began anew since knows nothing of it.
            silent = report is None or checkup.heard_ns[peer] < silent_ns
            if not silent or (report is not None and report.done):
                continue
            if peer == self._context.me:
                self.asked(peer, request)
            elif self._online(peer):
                self._outbox.parcel(peer).checks.append(request)

    def told(self, peer: str, report: ReplicaReport) -> None:
        """A replica reports."""
        group = self._context.groups.by_key(report.key)
        replica = None if group is None else group.unit
        if group is None or not isinstance(replica, StreamReplica):
            return
        checkup = self.checkups.get(group.name)
        if checkup is not None and checkup.token == report.token and peer in checkup.reports:
            checkup.reports[peer] = report
            checkup.heard_ns[peer] = self._context.now_ns
        if replica.leading is not None and peer != self._context.me:
            self._compare(replica, peer, report)

    def _compare(self, replica: StreamReplica, peer: str, report: ReplicaReport) -> None:
        mine = dict(replica.digests())
        both = [one for one in report.digests if one[0] in mine]
        if not both:
            return
        # What they had in common before says nothing of now.
        index, told = max(both)
        known = replica.different.get(peer)
        if encoded(mine[index]) == told:
            replica.different.pop(peer, None)
            return
        if known is None:
            replica.different[peer] = Difference(index)
            account, name = replica.key
            text = (
                f"Stream '{account} > {name}': behind entry {index} server {peer} has other"
                " messages than this leader, although no checksum says why"
            )
            self._context.log(LogLevel.ERROR, text)
        if known is None or not known.first:
            self.differences.look(replica, peer)

    # At a replica

    def asked(self, peer: str, request: CheckRequest) -> None:
        """The leader of a stream wants this replica to be checked."""
        group = self._context.groups.by_key(request.key)
        replica = None if group is None else group.unit
        if not isinstance(replica, StreamReplica):
            return
        name, now_ns = replica.group.name, self._context.now_ns
        known = self._local.get(name)
        if known is not None and known.token == request.token:
            return
        repaired = self._repairs.repaired.get(name, 0)
        self._local[name] = LocalCheck(replica, peer, request.token, now_ns, repaired)
        if not replica.volatile:
            self._scrubber.check_now(StreamTarget(replica, self._repairs))

    def _report(self, local: LocalCheck) -> ReplicaReport:
        replica = local.replica
        name, lost = replica.group.name, replica.store.lost
        known = self._scrubber.targets.get(name)
        mine = known if known is not None and known.began_ns >= local.began_ns else None
        read = replica.volatile or (mine is not None and mine.ended_ns > 0)
        settled = not self._repairs.at_work(name)
        return ReplicaReport(
            replica.group.key,
            local.token,
            read and settled,
            mine.bytes_read if mine is not None else 0,
            mine.bytes_total if mine is not None else 0,
            mine.findings if mine is not None else 0,
            self._repairs.repaired.get(name, 0) - local.repaired,
            list(lost.ranges()),
            list(replica.hopeless.ranges()),
            [(index, encoded(digest)) for index, digest in replica.digests()],
        )

    # In a turn

    def tick(self, now_ns: int) -> None:
        """Report what checks have found, and tell digests to leaders."""
        self.differences.tick(now_ns)
        if now_ns >= self._report_ns and (self._local or self.checkups):
            self._report_ns = now_ns + REPORT_NS
            for name, local in list(self._local.items()):
                report = self._report(local)
                if report.done or local.replica.group.gone:
                    del self._local[name]
                self._send(local.asker, report)
            # Nobody keeps the messages of a stream that is deleted.
            over = [name for name, one in self.checkups.items() if one.replica.group.gone]
            for name in over:
                del self.checkups[name]
            for checkup in self.checkups.values():
                # A server is read for one asker: the next leader's check would never end.
                if not checkup.is_done and checkup.replica.leading is not None:
                    self._ask(checkup)
        if now_ns >= self._compare_ns:
            self._compare_ns = now_ns + COMPARE_NS
            told, self._compared = self._compared, {}
            for replica in self._streams.values():
                name = replica.group.name
                self._compared[name] = self._tell_digests(replica, told.get(name, 0))

    def _tell_digests(self, replica: StreamReplica, known: int) -> int:
        """Unless that is `known`, told behind an entry: behind which one it is now."""
        group = replica.group
        leader, applied = group.leader, group.raft.applied
        if not leader or leader == self._context.me or known == applied:
            return known
        told = [(index, encoded(digest)) for index, digest in replica.digests()]
        self._send(leader, ReplicaReport(group.key, 0, False, 0, 0, 0, 0, [], [], told))
        return applied

    def _send(self, peer: str, report: ReplicaReport) -> None:
        if peer == self._context.me:
            self.told(peer, report)
        elif self._online(peer):
            self._outbox.parcel(peer).reports.append(report)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        due_ns = self.differences.next_due_ns()
        if self._local:
            return self._report_ns if due_ns is None else min(due_ns, self._report_ns)
        return due_ns


def encoded(digest: int) -> bytes:
    """A digest as bytes."""
    return (digest % (1 << (8 * DIGEST_BYTES))).to_bytes(DIGEST_BYTES, "little")
