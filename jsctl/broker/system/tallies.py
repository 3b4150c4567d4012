"""What a server notes from its start for those who may ask later."""

from collections import Counter
from dataclasses import field

from jsctl.broker.linking.link_counts import LinkCounts
from jsctl.broker.turn import ConnKind, ProcessFacts
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Tallies:
    """Written by the node and the system account, read by monitoring. Times in ns."""

    started_ns: int = 0
    loaded_ns: int = 0
    """When the configuration was read last; 0: at the start."""
    process: ProcessFacts = field(default_factory=ProcessFacts)
    """What the edge measured last."""
    links: LinkCounts = field(default_factory=LinkCounts)
    leafs: LinkCounts = field(default_factory=LinkCounts)
    gates: LinkCounts = field(default_factory=LinkCounts)
    """Messages over routes, over connections of leaf nodes and hubs, and of other clusters."""
    late: Counter[ConnKind] = field(default_factory=Counter)
    """Connections of other servers that too little could be written to."""
    stale: int = 0
    """Clients that did not answer pings."""
    failed: str = ""
    """Why the server has to end, once it has to."""
