"""Groups that go on with less than a majority, because an operator said so."""

from jsctl.api.codec import dumps
from jsctl.api.errors import api_error
from jsctl.api.responses import MetaRescueResponse, StreamRescueResponse
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.answers import head
from jsctl.broker.handlers.decisions import Rescue
from jsctl.broker.jetstream.streams.recall import recall
from jsctl.broker.raft.types import Members
from jsctl.broker.replication import salvage
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.turn import LogLevel

_RESPONSES: dict[str, type[MetaRescueResponse] | type[StreamRescueResponse]] = {
    "meta_rescue": MetaRescueResponse,
    "stream_rescue": StreamRescueResponse,
}


def lower_quorum(engine: Engine, asked: Rescue) -> bytes:
    """Do it on this server; the answer says from what to what, or why not.

    The groups of consumers follow as far as they need it: each may have other servers.
    """
    name = engine.options.server_name
    response = _RESPONSES[asked.kind]
    raft = engine.groups.by_name[asked.group].raft
    before = raft.needed(len(raft.members.voters))
    reason = _rescue(engine, asked.group, asked.quorum)
    if reason:
        error = api_error("JSClusterRescueErr", err=reason)
        return dumps(response(head=head(asked.kind, error), server=name))
    for other in asked.others:
        group = engine.groups.by_name.get(other)
        if group is not None:
            majority = group.raft.needed(len(group.raft.members.voters))
            _rescue(engine, other, min(asked.quorum, majority))
    made = response(head=head(asked.kind), server=name, prev_quorum=before, new_quorum=asked.quorum)
    return dumps(made)


def _rescue(engine: Engine, name: str, quorum: int) -> str:
    group = engine.groups.by_name[name]
    raft, log = group.raft, engine.context.log
    before = raft.needed(len(raft.members.voters))
    text = f"Quorum of '{name}' lowered from {before} to {quorum} by an operator: what only"
    text += " servers had that are away may be lost"
    if quorum == 1 and raft.leader is None and salvage.is_needed(group):
        text = f"'{name}' goes on with what the disk of this server has, because an operator said"
        text += " so: what only the log had, or servers that are away, is lost"
        reason = _salvage(engine, group)
    else:
        reason = raft.rescue(quorum)
    engine.groups.touch(group)
    if not reason:
        log(LogLevel.WARNING, text)
    return reason


def _salvage(engine: Engine, group: RaftGroup) -> str:
    """Begin a log behind what the replica has on its disk."""
    unit, founding = group.unit, engine.meta.founding
    peers = () if founding is None else founding.members
    if isinstance(unit, StreamReplica | ConsumerReplica):
        peers = unit.assignment.group.members
    if isinstance(unit, StreamReplica):
        recall(unit.stream)
    return salvage.begin(engine.groups, group, Members(tuple(peers)), 1)
