"""The `raft` block, which is ours alone: timings of replication."""

from jsctl.broker.conf.fields import Field, Reading, Section, duration, inert, make
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.options import RaftOptions


def raft(node: ConfigNode, reading: Reading) -> RaftOptions:
    """Timings of replication. Raises ConfigError if an election can be quicker than it should."""
    found = make(RaftOptions, RAFT.read(node, reading, "raft"))
    if found.election_min_ns < 2 * found.heartbeat_ns:
        raise node.error(
            "election_min is less than two heartbeats", "raise it or lower the heartbeat"
        )
    if found.election_max_ns <= found.election_min_ns:
        raise node.error("election_max is not above election_min", "raise it")
    return found


def positive_duration(node: ConfigNode, reading: Reading) -> int:
    """A duration above zero."""
    value = duration(node, reading)
    if value <= 0:
        raise node.error("must be above zero", 'write for example "100ms"')
    return value


RAFT = Section(
    Field(("heartbeat",), "heartbeat_ns", positive_duration),
    Field(("election_min",), "election_min_ns", positive_duration),
    inert(Field(("election_max",), "election_max_ns", positive_duration)),
    inert(Field(("peer_stale",), "peer_stale_ns", positive_duration)),
    inert(Field(("peer_offline",), "peer_offline_ns", positive_duration)),
    Field(("hibernate_after",), "hibernate_after_ns", positive_duration),
)
