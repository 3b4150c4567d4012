"""What the servers of a run are, and are configured with."""

from dataclasses import dataclass
from typing import Protocol

from jsctl.broker.gateway_options import GatewayOptions, GatewayUrl, RemoteGateway
from jsctl.broker.leafnode_options import LeafNodeOptions, LeafRemote, LeafUrl
from jsctl.broker.node import Node
from jsctl.broker.options import (
    ClientLimits,
    ClusterOptions,
    JetStreamOptions,
    Options,
    RaftOptions,
    Url,
)
from jsctl.broker.ports import Disk
from jsctl.broker.turn import Jitter

CLUSTER = "sim"
ROOM_BYTES = 1 << 40
SCRUB_NS = 2_000_000_000
"""All disks are read so often: what is sound has to stay so."""
ROUTE_PORT = 6222
GATEWAY_PORT = 7222
LEAF_PORT = 7422
EDGE_DOMAIN, HUB_DOMAIN = "edge", "hub"
LEAF = "leaf"
"""The place of the server that hangs on another one."""


class Build(Protocol):
    """How a node is made."""

    def __call__(
        self,
        options: Options,
        *,
        disk: Disk,
        jitter: Jitter,
        server_id: str,
        incarnation: str,
    ) -> Node:
        """See `Node`."""


@dataclass
class Settings:
    """What all servers of a run have in common."""

    raft: RaftOptions
    servers: int
    pending_max: int = ClientLimits().pending_bytes_max
    seeds: int = 0
    """How many of them are named in the routes; 0: all."""
    build: "Build" = Node
    """What runs: the broker's own node, or one with a planted bug around it."""
    clusters: tuple[int, ...] = ()
    """How many of them are in each cluster; empty: all are in one, which has no gateways."""
    leafs: int = 0
    """How many more hang on the first cluster."""
    edge: bool = False
    """Whether those have a JetStream of their own."""

    def place(self, number: int) -> str:
        """The cluster of a server; those behind the last cluster are leaf nodes."""
        for at, size in enumerate(self.clusters or (self.servers,)):
            if number < size:
                return f"{CLUSTER}{at + 1}" if self.clusters else CLUSTER
            number -= size
        return LEAF

    def members(self, place: str) -> list[str]:
        """The servers of a cluster."""
        return [f"n{number}" for number in range(self.servers) if self.place(number) == place]

    def options(self, number: int) -> Options:
        """What one of them is configured with."""
        place = self.place(number)
        client = ClientLimits(pending_bytes_max=self.pending_max)
        if place == LEAF:
            own = self._jetstream(EDGE_DOMAIN) if self.edge else JetStreamOptions()
            return Options(
                server_name=f"n{number}",
                leafnodes=self._leaf(),
                jetstream=own,
                raft=self.raft,
                client=client,
            )
        known = self.members(place)[: self.seeds or self.servers]
        routes = tuple(Url(name, ROUTE_PORT) for name in known)
        return Options(
            server_name=f"n{number}",
            cluster=ClusterOptions(name=place, port=ROUTE_PORT, routes=routes),
            gateway=self._gateway(place) if self.clusters else GatewayOptions(),
            leafnodes=LeafNodeOptions(port=LEAF_PORT) if self.clusters else LeafNodeOptions(),
            jetstream=self._jetstream(HUB_DOMAIN if self.edge else ""),
            raft=self.raft,
            client=client,
        )

    def _jetstream(self, domain: str) -> JetStreamOptions:
        return JetStreamOptions(
            enabled=True,
            memory_bytes_max=ROOM_BYTES,
            store_bytes_max=ROOM_BYTES,
            scrub_ns=SCRUB_NS,
            domain=domain,
        )

    def places(self) -> list[str]:
        """All clusters."""
        return list(dict.fromkeys(self.place(number) for number in range(self.servers)))

    def _gateway(self, place: str) -> GatewayOptions:
        remotes = tuple(
            RemoteGateway(one, tuple(GatewayUrl(name, GATEWAY_PORT) for name in self.members(one)))
            for one in self.places()
        )
        return GatewayOptions(name=place, port=GATEWAY_PORT, remotes=remotes)

    def _leaf(self) -> LeafNodeOptions:
        """It hangs on the first cluster."""
        urls = tuple(LeafUrl(name, LEAF_PORT) for name in self.members(self.place(0)))
        return LeafNodeOptions(remotes=(LeafRemote(urls=urls),))
