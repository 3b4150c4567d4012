"""What a server does so that its replicas stay whole: repairs, scrub, checks, put together."""

from collections.abc import Callable

from jsctl.broker.assets.assets import Assets
from jsctl.broker.assets.engine_options import ScrubLimits
from jsctl.broker.assets.repair.audits import Audits
from jsctl.broker.assets.repair.differences import FIRST_TOKEN
from jsctl.broker.assets.repair.repairs import Repairs
from jsctl.broker.assets.repair.scrub_targets import all_targets
from jsctl.broker.assets.repair.scrubber import Scrubber
from jsctl.broker.assets.repair.stream_checks import StreamChecks
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.peers.items import PeerFrame
from jsctl.broker.peers.outbox import PeerOutbox


class Upkeep:
    """See the module. `online`: whether a peer can be reached."""

    def __init__(
        self,
        context: ReplicaContext,
        outbox: PeerOutbox,
        assets: Assets,
        online: Callable[[str], bool],
        limits: ScrubLimits,
    ) -> None:
        streams = assets.streams
        self.repairs = Repairs(context, outbox, online, streams)
        self.scrubber = Scrubber(
            context,
            limits,
            lambda: all_targets(context, assets, self.repairs),
            lambda: sum(one.store.size_bytes for one in streams.values() if not one.volatile),
        )
        self.checks = StreamChecks(context, outbox, self.scrubber, self.repairs, online, streams)
        self.audits = Audits(context, outbox, self.checks.differences, online)

    def receive(self, frame: PeerFrame) -> None:
        """What a peer says of damage."""
        peer = frame.sender
        for request in frame.wanted:
            self.repairs.asked(peer, request)
        for answer in frame.found:
            if answer.token >= FIRST_TOKEN:
                self.checks.differences.told(peer, answer)
            else:
                self.repairs.told(peer, answer)
        for check in frame.checks:
            self.checks.asked(peer, check)
        for report in frame.reports:
            self.checks.told(peer, report)
        for audit in frame.audits:
            self.audits.asked(peer, audit)
        for audited in frame.audited:
            self.audits.told(peer, audited)

    def tick(self, now_ns: int) -> None:
        """Go on."""
        self.repairs.tick(now_ns)
        self.scrubber.tick(now_ns)
        self.checks.tick(now_ns)
        self.audits.tick(now_ns)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        parts = (self.repairs, self.scrubber, self.checks, self.audits)
        due = [part.next_due_ns() for part in parts]
        return min((at for at in due if at is not None), default=None)
