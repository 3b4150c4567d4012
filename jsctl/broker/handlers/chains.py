"""Requests about the chain of hashes that a stream may have: STREAM.VERIFY and STREAM.HEAD."""

from jsctl.api.errors import api_error
from jsctl.api.requests import StreamCheckRequest, StreamHeadRequest
from jsctl.broker.handlers.answers import is_empty, parsed
from jsctl.broker.handlers.decisions import AuditStream, Decision, SignHead, Silent
from jsctl.broker.handlers.streams import existing
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.requests import ApiRequest

NO_CHAIN = "the stream has no chain: its metadata has no jsctl.chain"
BEHIND_END = "the chain ends at sequence {}"
FORGOTTEN = "the chain's hashes before sequence {} are not kept any more"


def verify(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.VERIFY.<stream>; the leader has every replica read its messages."""
    start = not is_empty(request) and parsed(StreamCheckRequest, request).start
    found = existing(view, request.account, names[0])
    leader = view.stream_leader(found.account, found.name)
    if leader is None:
        return Silent()
    if leader.stream.chained.chain is None:
        raise api_error("JSStreamGeneralErrorF", err=NO_CHAIN)
    return AuditStream(found.group.name, start, chained=True)


def head_of(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.HEAD.<stream>"""
    seq = 0 if is_empty(request) else parsed(StreamHeadRequest, request).seq
    found = existing(view, request.account, names[0])
    leader = view.stream_leader(found.account, found.name)
    if leader is None:
        return Silent()
    chain = leader.stream.chained.settled(leader.stream.applied)
    if chain is None:
        raise api_error("JSStreamGeneralErrorF", err=NO_CHAIN)
    seq = seq or chain.seq
    if seq > chain.seq:
        raise api_error("JSStreamGeneralErrorF", err=BEHIND_END.format(chain.seq))
    link = chain.link_at(seq)
    if not link:
        raise api_error("JSStreamGeneralErrorF", err=FORGOTTEN.format(chain.anchor_seq))
    return SignHead(found.account, found.name, chain.since, seq, link)
