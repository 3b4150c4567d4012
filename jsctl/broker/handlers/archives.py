"""STREAM.SNAPSHOT and STREAM.RESTORE: what is checked before an archive leaves or is taken.

A restore has two decisions. The first one says who receives the archive, and changes nothing. The
second one, when all of it is durable there, makes a stream of it: by then the name may be taken,
and the account full.
"""

from jsctl.api import jsontext
from jsctl.api.errors import api_error
from jsctl.api.requests import StreamRestoreRequest, StreamSnapshotRequest
from jsctl.api.stream import StreamConfig
from jsctl.broker.handlers import placing, streams
from jsctl.broker.handlers.answers import is_empty, parsed
from jsctl.broker.handlers.decisions import (
    BeginRestore,
    Decision,
    ProposeMeta,
    Reply,
    SendSnapshot,
)
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.meta.assignments import StreamAssignment, consumer_from, stream_from
from jsctl.broker.jetstream.meta.entries import assign_restored
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jetstream.streams.config import checked
from jsctl.broker.subject.validity import is_valid_literal
from jsctl.dataclass import replace

INSTALL = b"$JSI.RESTORE.INSTALL"
"""By what servers ask the meta leader to make a stream of what they received. Clients cannot: what
they ask is captured on subjects of the API."""
RESERVED = b"$JS."
"""Where servers are asked, and told what was acknowledged."""
INSTALLED = b"{}"
"""What the receiver of an archive is told when its stream is there."""


def snapshot(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.SNAPSHOT.<stream>"""
    if is_empty(request):
        raise api_error("JSBadRequestErr")
    found = streams.existing(view, request.account, names[0])
    asked = parsed(StreamSnapshotRequest, request)
    to = asked.deliver_subject.encode()
    # An archive's end has no body: that is a request to delete, say, which nobody checks whether
    # whoever asks for the archive may make.
    if not is_valid_literal(to) or to.startswith(RESERVED):
        raise api_error("JSSnapshotDeliverSubjectInvalidErr")
    return SendSnapshot(found.group.name, asked)


def restore(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.RESTORE.<stream>"""
    if is_empty(request):
        raise api_error("JSBadRequestErr")
    asked = parsed(StreamRestoreRequest, request).config
    config = replace(asked, name=asked.name or names[0])
    if config.name != names[0]:
        raise api_error("JSStreamMismatchErr")
    if any(mark in config.name for mark in "/\\"):
        raise api_error("JSStreamNameContainsPathSeparatorsErr")
    config = checked(config, limits=view.config_limits)
    streams.check_size(view, request, config)
    _check(view, request, config)
    group = placing.new_group(view, config, request.client.cluster)
    receiver = view.me if view.me in group.peers else group.preferred or group.peers[0]
    lives = dict(group.incarnations)
    if group.storage == "file":
        # Invariant: who received the archive has the stream's state, or must not begin without.
        lives.pop(receiver, None)
    group = replace(group, preferred=receiver, founders=(receiver,), incarnations=lives)
    made = StreamAssignment(
        account=request.account,
        name=config.name,
        config=config,
        group=group,
        created_ns=view.now_ns,
        client=request.client,
        request=request,
    )
    return BeginRestore(made)


def _check(view: View, request: ApiRequest, config: StreamConfig) -> None:
    if view.meta.stream(request.account, config.name) is not None:
        raise api_error("JSStreamNameExistRestoreFailedErr")
    streams.check(view, request, config)


def install(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """What a server of this cluster received is to be a stream now."""
    document = jsontext.parse_object(request.payload, bytes_max=jsontext.OWN_BYTES_MAX)
    made = stream_from(document["stream"])
    told = document["consumers"]
    assert isinstance(told, list)
    known = view.meta.stream(made.account, made.name)
    if known is not None and known.group.name == made.group.name:
        return Reply(INSTALLED)
    _check(view, request, made.config)
    entry = assign_restored(made, list(map(consumer_from, told)))
    return ProposeMeta([entry], INSTALLED)
