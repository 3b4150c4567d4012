"""Groups that go on with less than a majority, because an operator said so."""

from jsctl.api.codec import dumps
from jsctl.api.errors import api_error
from jsctl.api.responses import MetaRescueResponse, StreamRescueResponse
from jsctl.broker.assets.engine import Engine
from jsctl.broker.handlers.answers import head
from jsctl.broker.handlers.decisions import Rescue
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
    before = group.raft.needed(len(group.raft.members.voters))
    reason = group.raft.rescue(quorum)
    engine.groups.touch(group)
    if not reason:
        text = f"Quorum of '{name}' lowered from {before} to {quorum} by an operator: what only"
        text += " servers had that are away may be lost"
        engine.context.log(LogLevel.WARNING, text)
    return reason
