"""A broker of one server, as consumer handlers see it, without any broker behind it."""

from dataclasses import dataclass, field
from typing import cast

from jsctl.api.stream import ReplicaDamage, StreamConfig
from jsctl.broker.handlers.consumer_info import ConsumersView
from jsctl.broker.handlers.decisions import Decision, ProposeMeta
from jsctl.broker.handlers.view import AccountUsage, GroupView
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.meta.assignments import GroupAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.entries import assign_stream
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.quotas import AccountQuota
from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.config import ConfigLimits
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.turn import Jitter

ACCOUNT = "$G"


@dataclass
class OneBroker:
    """Meta state and, where tests put them, consumers and their leaders."""

    now_ns: int = 1_700_000_000_000_000_000
    me: str = "PEERaaaa"
    server_name: str = "one"
    cluster: str = ""
    domain: str = ""
    clustered: bool = False
    unique_tag: str = ""
    config_limits: ConfigLimits = field(default_factory=ConfigLimits)
    meta_state: Meta = field(default_factory=Meta)
    peers: tuple[str, ...] = ("PEERaaaa",)
    offline: set[str] = field(default_factory=set)
    listening: set[bytes] = field(default_factory=set)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    leaders: dict[str, ConsumerLeader] = field(default_factory=dict)
    woken: list[str] = field(default_factory=list)
    names: int = 0
    group_leader: str = ""
    jitter: Jitter = field(default_factory=lambda: lambda n: 0)

    @property
    def meta(self) -> Meta:
        return self.meta_state

    def servers(self) -> list[ServerFacts]:
        return [
            ServerFacts(peer=peer, name=peer.lower(), online=peer not in self.offline)
            for peer in self.peers
        ]

    def account(self, name: str) -> AccountQuota | None:
        return None

    def account_usage(self, name: str) -> AccountUsage:
        return AccountUsage()

    def stream(self, account: str, name: str) -> Stream | None:
        return None

    def consumer(self, account: str, stream: str, name: str) -> Consumer | None:
        return self.consumers.get(name)

    def consumer_leader(self, account: str, stream: str, name: str) -> ConsumerLeader | None:
        return self.leaders.get(name)

    def wake_consumer(self, account: str, stream: str, name: str) -> None:
        self.woken.append(name)

    def group(self, name: str) -> GroupView | None:
        return None

    def stream_leader(self, account: str, name: str) -> StreamLeader | None:
        return None

    def leader_of(self, group: str) -> str:
        return self.group_leader

    def damage(self, assigned: GroupAssignment) -> tuple[ReplicaDamage, ...]:
        return ()

    def has_interest(self, account: str, subject: bytes) -> bool:
        return subject in self.listening

    def new_name(self, length: int) -> str:
        self.names += 1
        return f"N{self.names:0{length - 1}}"

    def add_stream(self, config: StreamConfig, *peers: str) -> None:
        """Assign a stream."""
        group = GroupAssignment(f"S-{config.name}", peers or self.peers, "file")
        made = StreamAssignment(ACCOUNT, config.name, config, group, 1, ClientInfo(ACCOUNT), None)
        self.meta_state.apply(1, assign_stream(made))

    def carry_out(self, decision: Decision) -> None:
        """Apply what a decision proposes to the meta state."""
        if isinstance(decision, ProposeMeta):
            for entry in decision.entries:
                self.meta_state.apply(1, entry)


def as_view(broker: OneBroker) -> ConsumersView:
    """The broker as handlers take it."""
    return cast(ConsumersView, broker)


def request_of(subject: bytes, payload: bytes) -> ApiRequest:
    """An API request of a client."""
    client = ClientInfo(ACCOUNT)
    return ApiRequest(ACCOUNT, subject, b"_INBOX.r", b"", payload, client, "PEERaaaa")
