"""What the servers of a run are, and are configured with."""

from dataclasses import dataclass
from typing import Protocol

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

    def options(self, name: str) -> Options:
        """What one of them is configured with."""
        known = self.seeds or self.servers
        routes = tuple(Url(f"n{number}", ROUTE_PORT) for number in range(known))
        return Options(
            server_name=name,
            cluster=ClusterOptions(name=CLUSTER, port=ROUTE_PORT, routes=routes),
            jetstream=JetStreamOptions(
                enabled=True,
                memory_bytes_max=ROOM_BYTES,
                store_bytes_max=ROOM_BYTES,
                scrub_ns=SCRUB_NS,
            ),
            raft=self.raft,
            client=ClientLimits(pending_bytes_max=self.pending_max),
        )
