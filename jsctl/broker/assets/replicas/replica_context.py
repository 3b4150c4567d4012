"""What the replicas of one server share: who it is, its disk, its router, its groups, the time."""

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from jsctl.api.errors import ApiError, api_error
from jsctl.broker.assets.replicas.crowds import Crowds
from jsctl.broker.assets.replicas.facts import Fact
from jsctl.broker.assets.replicas.run_queue import RunQueue
from jsctl.broker.interest.targets import Sink, Subscription
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from jsctl.broker.jetstream.streams.publish_room import PublishRoom
from jsctl.broker.ports import Disk, ZoneOffset, only_utc
from jsctl.broker.protocol.deliveries import Item, OutgoingMessage
from jsctl.broker.replication.group import GroupKind
from jsctl.broker.replication.groups import Groups
from jsctl.broker.store.segments.files import StoreOptions
from jsctl.broker.turn import Jitter, LogLevel, LogLine
from jsctl.dataclass import dataclass


class AccountTraffic(Protocol):
    """The router, as far as streams and consumers need it. Accounts by name."""

    def listen(
        self, account: str, pattern: bytes, sink: Sink, queue: bytes = b""
    ) -> Subscription | None:
        """Capture what is published; None for an account that is unknown, or has no JetStream."""

    def unlisten(self, subscription: Subscription) -> None:
        """End a capture."""

    def deliver(self, account: str, said: Sequence[OutgoingMessage]) -> None:
        """Publish a batch, in order: what goes where clients wanted it, and is no request."""

    def ask(self, account: str, item: Item) -> None:
        """Publish a request of this server."""

    def wanted(self, account: str, subject: bytes) -> bool:
        """Whether anybody listens."""

    def reached(self, account: str, subject: bytes) -> bool:
        """The same for a consumer: nobody hears one in an account that has no JetStream."""

    def named(self, account: str, subject: bytes) -> bool:
        """Whether somebody listens to just this subject, by no pattern."""

    def changes(self, account: str) -> list[bytes] | None:
        """Patterns on which somebody began or ceased to listen since the last call; None: any."""

    def has_changes(self, account: str) -> bool:
        """Whether `changes` would tell of any."""


REFUSED_NS = 20_000_000
"""How soon a leader tries again whose log takes nothing: leadership is being handed over, or too
much is not committed yet."""


class ConsumerWatcher(Protocol):
    """A consumer with a replica here."""

    @property
    def leading(self) -> bool:
        """Whether deliveries are made here."""

    def needs(self, seq: int, subject: bytes) -> bool:
        """Whether this consumer still has to see a message, or waits for its ack."""

    def interested(self, subject: bytes) -> bool:
        """Whether messages on a subject are for this consumer."""

    @property
    def takes_all(self) -> bool:
        """Whether every subject of the stream is for this consumer."""

    @property
    def concerns(self) -> Sequence[bytes] | None:
        """Patterns of all that it may be interested in, or need; None: that may be anything."""


class Quota(Protocol):
    """Limits on what streams may store, of accounts and of this server."""

    def refusal(
        self, account: str, replicas: int, *, volatile: bool, now_ns: int
    ) -> ApiError | None:
        """Why no stream of an account with so many replicas may take messages now; None when there
        is room.

        `volatile`: those that only memory holds.
        """


@dataclass(slots=True)
class ReplicaContext:
    """Shared by all replicas of a server; `now_ns` is set at the start of each turn."""

    me: str
    server_name: str
    cluster: str
    incarnation: int
    boot: int
    """This run of the process; what only memory holds is bound to it."""
    disk: Disk
    traffic: AccountTraffic
    groups: Groups
    jitter: Jitter
    quota: Quota
    domain: str = ""
    room: PublishRoom = field(default_factory=PublishRoom)
    """For publishers."""
    zones: ZoneOffset = only_utc
    stores: StoreOptions = field(default_factory=StoreOptions)
    disk_full: bool = False
    """There is less room than the log needs for itself: nothing new is taken."""
    replaying: bool = False
    """What the meta state says now was decided before this server started."""
    now_ns: int = 0
    logs: list[LogLine] = field(default_factory=list)
    queue: RunQueue = field(default_factory=RunQueue)
    """Which of them work in this turn."""
    facts: list[Fact] = field(default_factory=list)
    """What was found out since the node last asked."""
    damaged: dict[str, int] = field(default_factory=dict)
    """Streams' groups -> a message that somebody waits for and whose bytes are damaged here."""
    strangers: dict[str, None] = field(default_factory=dict)
    """Consumers' groups whose leader here waits until the stream's leader surely knows them."""
    bereaved: dict[str, None] = field(default_factory=dict)
    """Groups of work queues led here whose consumers may have finished more than is known here."""
    unused: list[ConsumerAssignment] = field(default_factory=list)
    """Consumers that were not used for their threshold: they are to be deleted."""
    crowds: Crowds = field(default_factory=Crowds)
    """Publishers that wait for the log."""

    @property
    def api_prefixes(self) -> tuple[bytes, ...]:
        """What subjects of the API start with: with the domain as well, if there is one."""
        plain = b"$JS.API."
        return (plain, f"$JS.{self.domain}.API.".encode()) if self.domain else (plain,)

    @property
    def meta_applied(self) -> int:
        """Up to where what the meta group decided is applied here."""
        meta = self.groups.by_name.get(GroupKind.META.value)
        return 0 if meta is None else meta.raft.applied

    @property
    def knows_all(self) -> bool:
        """Whether all assignments are applied here that the meta leader has."""
        meta = self.groups.by_name.get(GroupKind.META.value)
        return meta is not None and meta.raft.abreast

    def refusal(self, account: str, replicas: int, *, volatile: bool) -> ApiError | None:
        """Why a stream may not take messages now: the disk, the server or its account is full."""
        if self.disk_full and not volatile:
            return api_error("JSInsufficientResourcesErr")
        return self.quota.refusal(account, replicas, volatile=volatile, now_ns=self.now_ns)

    def log(self, level: LogLevel, text: str) -> None:
        """A fact for the operator."""
        self.logs.append(LogLine(level, text))
