"""One connection of a leaf node or a hub, from the first byte to the last."""

from dataclasses import field
from enum import Enum, auto
from itertools import islice

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.accounts.identity import NOT_VOUCHED, Check, ClientIdentity, Vouched
from jsctl.broker.accounts.leaf_guard import LeafGuard, Subjects
from jsctl.broker.compression_options import LEVELS, NOT_SUPPORTED, OFF, Compression
from jsctl.broker.interest.outbound import ClientFacts
from jsctl.broker.interest.targets import LeafLink
from jsctl.broker.leafnodes.domains import OPEN, Barrier
from jsctl.broker.leafnodes.remotes import Remote
from jsctl.broker.leafnodes.types import LeafFacts, LeafSettings
from jsctl.broker.leafnodes.wire import LeafConnect, LeafInfo
from jsctl.broker.linking.compression import Unpacking
from jsctl.broker.login_options.permissions import PermissionRules
from jsctl.broker.protocol.route import LeafParser
from jsctl.broker.sessions.keepalive import KeepAlive
from jsctl.broker.sessions.listing import of_link, pending_bytes
from jsctl.broker.sessions.session import KEPT_SUBSCRIPTIONS_MAX
from jsctl.dataclass import dataclass

NAMELESS = "_"
"""Other servers of the cluster always know of a message that it comes from a leaf node."""


class LeafStage(Enum):
    """What a connection waits for."""

    INFO = auto()
    """Dialed: the hub speaks first."""
    CONNECT = auto()
    """Accepted: the leaf node has to say who it is."""
    PASSWORD = auto()
    """The same: its password is being checked."""
    CONFIRM = auto()
    """Dialed: the hub has to agree."""
    LINKED = auto()


@dataclass(slots=True, eq=False)
class Leaf:
    """See the module. Times in ns."""

    conn: int
    host: str
    port: int
    leaf_id: int
    opened_ns: int
    parser: LeafParser
    alive: KeepAlive
    stage: LeafStage
    remote: Remote | None = None
    """Set on connections that this side dialed."""
    credentials: str = ""
    """The content of the file that the remote logs in with."""
    nonce: str = ""
    account: Account | None = None
    identity: ClientIdentity | None = None
    """Of an accepted one that has logged in."""
    check: Check | None = None
    said: LeafConnect | None = None
    told: LeafInfo | None = None
    """A hub's first INFO."""
    link: LeafLink | None = None
    barrier: Barrier = OPEN
    hub_rules: tuple[Subjects | None, Subjects | None] = (None, None)
    """What the hub lets this server subscribe and publish."""
    held: list[bytes] = field(default_factory=list)
    """What came while the password was being checked."""
    rest: bytes = b""
    """What came and is for the next turn; meanwhile no more is read."""
    last_in_ns: int = 0
    own: Compression = Compression()
    """What this side wants, by its configuration."""
    agreed: str = ""
    """How this side compresses, or why it does not; empty until that is settled."""
    unpacking: Unpacking | None = None
    """The way in of a connection that is compressed."""
    closing: bool = False

    @property
    def label(self) -> str:
        """As the log names it."""
        return f"{self.host}:{self.port} - lid:{self.leaf_id}"

    @property
    def is_hub(self) -> bool:
        """Whether the other side is the hub of this server."""
        if self.remote is not None:
            return not self.remote.options.hub
        return self.said is not None and self.said.is_hub

    @property
    def server_name(self) -> str:
        """The other server's."""
        if self.told is not None:
            return self.told.server_name or self.told.server_id
        return self.said.name if self.said is not None else ""

    @property
    def cluster(self) -> str:
        """The other server's, which is its own name if it is in none."""
        if self.told is not None:
            return self.told.cluster
        return self.said.cluster if self.said is not None else ""

    @property
    def domain(self) -> str:
        """Of JetStream at the other side."""
        if self.told is not None:
            return self.told.domain
        return self.said.domain if self.said is not None else ""

    @property
    def jetstream(self) -> bool:
        """Whether the other side says that it has JetStream."""
        found = self.told or self.said
        return found is not None and found.jetstream

    @property
    def compression(self) -> str:
        """As reports name it."""
        if self.agreed:
            return self.agreed
        if self.said is not None:
            return self.said.compression or NOT_SUPPORTED
        return OFF if self.told is not None and self.told.compression else NOT_SUPPORTED

    @property
    def level(self) -> str:
        """How what is sent has to be compressed now; empty: not at all."""
        return self.agreed if self.agreed in LEVELS else ""

    def guard(self) -> LeafGuard | None:
        """What may cross, by the permissions and by what JetStream keeps apart."""
        if self.remote is not None and self.is_hub:
            imports, exports = self.hub_rules
            options = self.remote.options
            send = (exports or Subjects()).but(one.encode() for one in options.deny_exports)
            tell = (imports or Subjects()).but(one.encode() for one in options.deny_imports)
            tell = tell.but(self.barrier.both)
            send = send.but((*self.barrier.both, *self.barrier.leaving))
            return None if send.free and tell.free else LeafGuard(send, tell, tell)
        return self._guard_of_hub()

    def _guard_of_hub(self) -> LeafGuard | None:
        rules = self.rules or PermissionRules()
        take = Subjects.of(rules.publish)
        send = Subjects.of(rules.subscribe, empty_is_all=True)
        if self.remote is not None:
            options = self.remote.options
            send = send.but(one.encode() for one in options.deny_exports)
            take = take.but(one.encode() for one in options.deny_imports)
        if self.said is not None:
            send = send.but(self.said.deny_pub)
        tell = take.but(self.barrier.both)
        send = send.but((*self.barrier.both, *self.barrier.leaving))
        if send.free and tell.free and take.free:
            return None
        return LeafGuard(send, tell, take, rules.responses)

    @property
    def rules(self) -> PermissionRules | None:
        """The permissions of the user that an accepted one is."""
        return None if self.identity is None else self.identity.permissions

    @property
    def vouched(self) -> Vouched:
        """What the JWT says that it has logged in with, if there is one."""
        return (self.identity and self.identity.vouched) or NOT_VOUCHED

    def facts(
        self, stopped_ns: int = 0, reason: str = "", *, subscriptions: bool = False
    ) -> LeafFacts:
        """A copy for reports: there may be very many subscriptions, and closed ones are kept."""
        link, account, found = self.link, self.account, self.told or self.said
        assert link is not None and account is not None and found is not None
        listed = KEPT_SUBSCRIPTIONS_MAX if stopped_ns else None if subscriptions else 0
        return LeafFacts(
            conn=self.conn,
            leaf_id=self.leaf_id,
            name=self.server_name,
            version=found.version,
            spoke=self.is_hub,
            isolated=link.isolated,
            solicited=self.remote is not None,
            account=account.name,
            user="" if self.identity is None else self.identity.user,
            host=self.host,
            port=self.port,
            opened_ns=self.opened_ns,
            last_ns=self.last_in_ns,
            rtt_ns=self.alive.rtt_ns,
            pending_bytes=0 if stopped_ns else pending_bytes(link),
            in_msgs=link.in_messages,
            in_bytes=link.in_bytes,
            out_msgs=link.out_messages,
            out_bytes=link.payload_bytes_out,
            subscription_count=len(link.subscriptions),
            subscriptions=tuple(islice(of_link(link), listed)),
            compression=self.compression,
            stopped_ns=stopped_ns,
            reason=reason,
            account_tag=account.tag,
            vouched=self.vouched,
        )


class LeafPeer(LeafLink):
    """The sending side of a linked connection."""

    __slots__ = ("_leaf", "_settings")

    def __init__(
        self, leaf: Leaf, account: Account, settings: LeafSettings, *, isolated: bool
    ) -> None:
        found = leaf.told or leaf.said
        assert found is not None
        super().__init__(
            leaf.conn,
            leaf.leaf_id,
            account,
            hub=leaf.is_hub,
            peer=found.server_id,
            cluster=(leaf.cluster or ("" if leaf.is_hub else NAMELESS)).encode(),
            guard=leaf.guard(),
            isolated=isolated,
        )
        self.name = leaf.server_name
        self.headers = found.headers and settings.headers
        self.traces = found.traces
        self._leaf = leaf
        self._settings = settings

    def facts(self) -> ClientFacts:
        """Who it is, for services that its requests reach."""
        leaf = self._leaf
        found, vouched = leaf.told or leaf.said, leaf.vouched
        return ClientFacts(
            self.leaf_id,
            self.account.name,
            "" if leaf.identity is None else leaf.identity.user,
            leaf.host,
            leaf.server_name,
            "",
            "" if found is None else found.version,
            leaf.opened_ns,
            leaf.alive.rtt_ns,
            vouched.issuer,
            leaf.server_name,
            self._settings.cluster,
            "Leafnode",
            token=vouched.token,
            name_tag=vouched.name,
            tags=vouched.tags,
        )
