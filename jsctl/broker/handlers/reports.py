"""What leaders tell that nobody else asks for.

STREAM.CHECK, in which replicas read all that they have on their disks; STREAM.AUDIT, in which these
are compared; STREAM.VERIFY and STREAM.HEAD, what a chain of hashes shows of them; STREAM.SCHEDULES
and CONSUMER.WAITING, what waits and until when.
"""

from bisect import bisect_right
from itertools import islice

from jsctl.api.codec import dumps
from jsctl.api.errors import api_error
from jsctl.api.requests import StreamCheckRequest, StreamHeadRequest, WaitingRequest
from jsctl.api.responses import (
    ConsumerWaitingResponse,
    ScheduleInfo,
    StreamSchedulesResponse,
    WaitingMessage,
)
from jsctl.api.times import format_time
from jsctl.broker.handlers.answers import head, is_empty, parsed
from jsctl.broker.handlers.decisions import (
    AuditStream,
    CheckStream,
    Decision,
    Reply,
    SignHead,
    Silent,
)
from jsctl.broker.handlers.streams import existing
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.requests import ApiRequest

PAGE = 1_000
NO_CHAIN = "the stream has no chain: its metadata has no jsctl.chain"
BEHIND_END = "the chain ends at sequence {}"
FORGOTTEN = "the chain's hashes before sequence {} are not kept any more"
NOTHING_TO_COMPARE = "a stream with one replica has nothing to be compared with"


def check(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.CHECK.<stream>; the leader asks the others, and tells of all."""
    start = not is_empty(request) and parsed(StreamCheckRequest, request).start
    found = existing(view, request.account, names[0])
    if view.stream_leader(found.account, found.name) is None:
        return Silent()
    return CheckStream(found.group.name, start)


def audit(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.AUDIT.<stream>"""
    start = not is_empty(request) and parsed(StreamCheckRequest, request).start
    found = existing(view, request.account, names[0])
    if view.stream_leader(found.account, found.name) is None:
        return Silent()
    if len(found.group.members) < 2:
        raise api_error("JSStreamGeneralErrorF", err=NOTHING_TO_COMPARE)
    return AuditStream(found.group.name, start)


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


def schedules(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.SCHEDULES.<stream>"""
    after, limit = _page(request)
    found = existing(view, request.account, names[0])
    leader = view.stream_leader(found.account, found.name)
    if leader is None:
        return Silent()
    known = leader.stream.schedules
    rows = [] if known is None else known.page(after, limit)
    told = tuple(
        [
            ScheduleInfo(
                seq=one.seq,
                subject=one.subject.decode("utf-8", "replace"),
                due=format_time(one.due_ns),
            )
            for one in rows
            if leader.stream.store.is_live(one.seq)
        ]
    )
    total = 0 if known is None else len(known)
    kind = head("stream_schedules")
    return Reply(
        dumps(StreamSchedulesResponse(head=kind, total=total, limit=limit, schedules=told))
    )


def waiting(leader: ConsumerLeader, request: ApiRequest) -> Decision:
    """CONSUMER.WAITING.<stream>.<consumer>, at its leader."""
    after, limit = _page(request)
    pending, seqs = leader.state.pending, list(leader.state.pending)
    start = bisect_right(seqs, after)
    told = tuple([_message(leader, seq) for seq in islice(seqs, start, start + limit)])
    kind = head("consumer_waiting")
    response = ConsumerWaitingResponse(head=kind, total=len(pending), limit=limit, messages=told)
    return Reply(dumps(response))


def _message(leader: ConsumerLeader, seq: int) -> WaitingMessage:
    state, redelivery = leader.state, leader.delivery.redelivery
    deliveries, queued = state.deliveries(seq), seq in redelivery.again
    wait_ns = redelivery.wait_of(deliveries)
    due_ns = state.pending[seq][1] + wait_ns if wait_ns and not queued else 0
    due = format_time(due_ns) if due_ns else ""
    nak = bool(due_ns) and seq in state.delayed
    return WaitingMessage(seq=seq, deliveries=deliveries, due=due, nak=nak, queued=queued)


def _page(request: ApiRequest) -> tuple[int, int]:
    """Behind which sequence, and how many at most."""
    asked = WaitingRequest() if is_empty(request) else parsed(WaitingRequest, request)
    if asked.limit < 0:
        raise api_error("JSBadRequestErr")
    return asked.after, min(asked.limit or PAGE, PAGE)
