"""STREAM.PURGE, MSG.GET and MSG.DELETE, answered by the stream's leader."""

from jsctl.api.codec import dumps
from jsctl.api.errors import api_error
from jsctl.api.requests import MsgDeleteRequest, MsgGetRequest, StreamPurgeRequest
from jsctl.api.responses import MsgGetResponse, StreamPurgeResponse, SuccessResponse
from jsctl.api.stream import RawStreamMsg
from jsctl.api.times import format_time, parse_time
from jsctl.api.words import Storage
from jsctl.broker.errors import Damaged
from jsctl.broker.handlers.answers import head, is_empty, parsed, success
from jsctl.broker.handlers.decisions import AwaitRepair, Decision, ProposeGroup, Reply, Silent
from jsctl.broker.handlers.streams import existing
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.record import Record
from jsctl.broker.subject.matching import Filters


def purge(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.PURGE.<stream>"""
    body = parsed(StreamPurgeRequest, request)
    found = existing(view, request.account, names[0])
    if found.config.sealed:
        raise api_error("JSStreamSealedErr")
    if found.config.deny_purge:
        raise api_error("JSStreamPurgeFailedF", err="stream purge not permitted")
    if body.seq and body.keep:
        raise api_error("JSBadRequestErr")
    leader = view.stream_leader(found.account, found.name)
    if leader is None:
        return Silent()
    if body.seq == 1:
        return Reply(_purged(0))
    up_to = body.seq - 1 if body.seq else 0
    entry = leader.purge(body.filter.encode(), up_to, body.keep)
    return ProposeGroup(found.group.name, [entry], _purged)


def _purged(count: int) -> bytes:
    return dumps(StreamPurgeResponse(head=head("stream_purge"), success=True, purged=count))


def delete(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.MSG.DELETE.<stream>"""
    if is_empty(request):
        raise api_error("JSBadRequestErr")
    body = parsed(MsgDeleteRequest, request)
    found = existing(view, request.account, names[0])
    if found.config.sealed:
        raise api_error("JSStreamSealedErr")
    if found.config.deny_delete:
        raise api_error("JSStreamMsgDeleteFailedF", err="message delete not permitted")
    leader = view.stream_leader(found.account, found.name)
    if leader is None:
        return Silent()
    store = leader.stream.store
    if not store.is_live(body.seq):
        if found.config.storage is Storage.MEMORY:
            raise api_error("JSSequenceNotFoundErrF", seq=body.seq)
        if body.seq > store.last_seq:
            raise api_error("JSStreamMsgDeleteFailedF", err="stream store EOF")
        if body.seq < store.first_seq:
            raise api_error("JSStreamMsgDeleteFailedF", err="no message found")
        raise api_error("JSSequenceNotFoundErrF", seq=body.seq)
    entry = leader.delete(body.seq, erase=not body.no_erase)
    return ProposeGroup(found.group.name, [entry], lambda count: _deleted(count, body.seq))


def _deleted(count: int, seq: int) -> bytes:
    if count:
        return success("stream_msg_delete")
    error = api_error("JSSequenceNotFoundErrF", seq=seq)
    return dumps(SuccessResponse(head=head("stream_msg_delete", error)))


def get(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.MSG.GET.<stream>; the leader answers, so that the answer is not stale."""
    if is_empty(request):
        raise api_error("JSBadRequestErr")
    body = parsed(MsgGetRequest, request)
    if not _is_sensible(body):
        raise api_error("JSBadRequestErr")
    found = existing(view, request.account, names[0])
    leader = view.stream_leader(found.account, found.name)
    if leader is None:
        return Silent()
    try:
        record = find(leader.stream, body)
    except Damaged as damage:
        error = api_error("JSStreamGeneralErrorF", err=damage_text(damage))
        refusal = dumps(MsgGetResponse(head=head("stream_msg_get", error)))
        return AwaitRepair(found.group.name, damage, refusal)
    if record is None:
        raise api_error("JSNoMessageFoundErr")
    message = RawStreamMsg(
        subject=record.subject.decode("utf-8", "replace"),
        seq=record.seq,
        hdrs=b"" if body.no_hdr else record.headers,
        data=record.payload,
        time=format_time(record.time_ns),
    )
    return Reply(dumps(MsgGetResponse(head=head("stream_msg_get"), message=message)))


def damage_text(damage: Damaged) -> str:
    """What is said of messages that cannot be read, to whoever asked for them."""
    first, last = damage.first_seq, damage.last_seq
    if first == last:
        return f"message {first} is damaged"
    return f"messages {first} to {last} are damaged"


def _is_sensible(body: MsgGetRequest) -> bool:
    """One way to say which message; what only direct gets know is passed over, but for batches."""
    ways = (body.seq > 0, bool(body.last_by_subj), bool(body.start_time))
    if body.batch > 0 or body.max_bytes > 0 or sum(ways) > 1:
        return False
    if body.last_by_subj and body.next_by_subj:
        return False
    return any(ways) or bool(body.next_by_subj)


def last_of(stream: Stream, subject: bytes) -> Record | None:
    """The last message of a subject. Raises Damaged if it is, or may be, a damaged one."""
    store = stream.store
    seq = store.last_for(subject)
    store.expect_known(seq or 0)
    return None if seq is None else store.load(seq)


def find(stream: Stream, body: MsgGetRequest) -> Record | None:
    """The message that a request asks for. Raises Damaged if it is, or may be, a damaged one."""
    store = stream.store
    if body.last_by_subj:
        return last_of(stream, body.last_by_subj.encode())
    start = body.seq
    if body.start_time:
        start = store.seq_at_time(parse_time(body.start_time))
    if body.next_by_subj:
        return store.next(Filters((body.next_by_subj.encode(),)), start)
    return store.next(Filters(), start) if body.start_time else store.load(start)
