"""Reads what one replica holds: a consumer whose leader is that replica, message by message.

A consumer is served from its own leader's store, so the leader decides whose content is read.
`Pinned` travels to Spark's tasks as plain data.
"""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from jsctl.api.codec import decode, encode
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.errors import ApiError
from jsctl.api.subjects import AckSubject, api_subject, parse_ack
from jsctl.api.words import AckPolicy, DeliverPolicy
from jsctl.errors import JsctlError, RequestFailed, Unreachable
from jsctl.settings import Settings
from jsctl.spark.connection.jetstream import JetStream, api_prefix
from jsctl.spark.connection.wire import Wire, open_wire
from jsctl.spark.options import ConnectionOptions

if TYPE_CHECKING:
    import pyarrow as pa

PULL = 2_000
PULL_BYTES = 4 << 20
EXPIRES_S = 2.0
ROWS = 10_000
PIN_S = 30.0
PIN_PAUSE_S = 0.1
PIN_ANSWER_NS = 1_000_000_000
CONSUMER_NOT_FOUND = 10014
BEHIND_S = 20.0
"""How long a replica may be behind before what it lacks counts as missing."""
INACTIVE_NS = 300 * 1_000_000_000
OUTAGE_NS = 30 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class Pinned:
    """A consumer that a peer leads; its messages up to `last` are to be read."""

    settings: Settings
    stream: str
    peer: str
    consumer: str
    first: int
    last: int


def pin(settings: Settings, stream: str, peer: str, replicas: int, first: int, last: int) -> Pinned:
    """Make a consumer and move it to a peer. Raises RequestFailed when it cannot be made, and
    Unreachable when it does not get there."""
    name = f"jsctl_audit_{secrets.token_hex(6)}"
    config = ConsumerConfig(
        name=name,
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=max(1, first),
        ack_policy=AckPolicy.NONE,
        inactive_threshold=INACTIVE_NS,
        num_replicas=replicas,
        mem_storage=True,
    )
    found = Pinned(settings, stream, peer, name, first, last)
    body = {"stream_name": stream, "config": encode(config), "action": "create"}
    with JetStream(ConnectionOptions(settings, OUTAGE_NS)) as js:
        try:
            js.ask("consumer_create", stream, name, body=body)
        except ApiError as error:
            raise RequestFailed(error, prefix=f"stream {stream}") from error
    _move(found)
    return found


def _move(pinned: Pinned) -> None:
    """Ask the consumer's leader to step down until the peer leads.

    A group that has just elected somebody else, or is at it, says no or nothing: the answer to
    look at is who leads. Requests are given up soon, since silence is normal here.
    """
    impatient = replace(pinned.settings, timeout_ns=min(pinned.settings.timeout_ns, PIN_ANSWER_NS))
    with JetStream(ConnectionOptions(impatient, 0)) as js:
        end = time.monotonic() + PIN_S
        while (leader := _leader_now(js, pinned)) != pinned.peer:
            if time.monotonic() > end:
                unpin(js, pinned)
                raise Unreachable(
                    f"no consumer of {pinned.stream} could be moved to {pinned.peer}",
                    hints=("is it online? the servers must be of version 2.11 or newer",),
                )
            if leader:
                _step_down(js, pinned)
            time.sleep(PIN_PAUSE_S)


def unpin(js: JetStream, pinned: Pinned) -> None:
    """Delete the consumer; it goes by itself later if that fails."""
    try:
        js.ask("consumer_delete", pinned.stream, pinned.consumer)
    except (JsctlError, ApiError, OSError):
        return


def leader_of(js: JetStream, pinned: Pinned) -> str:
    """Who leads the consumer now, empty if nobody. Raises RequestFailed without the consumer."""
    cluster = _info(js, pinned).cluster
    return cluster.leader if cluster is not None else ""


def _info(js: JetStream, pinned: Pinned) -> ConsumerInfo:
    try:
        return decode(ConsumerInfo, js.ask("consumer_info", pinned.stream, pinned.consumer))
    except ApiError as error:
        about = f"the consumer of {pinned.stream} at {pinned.peer}"
        raise RequestFailed(error, prefix=about) from error


def _leader_now(js: JetStream, pinned: Pinned) -> str:
    """Who leads the consumer, empty while nobody answers for it."""
    try:
        return leader_of(js, pinned)
    except (JsctlError, ApiError, TimeoutError):
        return ""


def _step_down(js: JetStream, pinned: Pinned) -> None:
    body = {"placement": {"preferred": pinned.peer}}
    try:
        js.ask("consumer_leader_stepdown", pinned.stream, pinned.consumer, body=body)
    except (JsctlError, ApiError, TimeoutError):
        return


def read_replica(pinned: Pinned) -> "Iterator[pa.RecordBatch]":
    """The (peer, seq, hash) of all messages that the replica holds, as Arrow batches.

    Raises JsctlError when the consumer moved to another peer meanwhile: what was read then is
    nobody's content.
    """
    with _kept(pinned) as there:
        yield from _batches(there)


@contextmanager
def _kept(pinned: Pinned) -> Iterator[Pinned]:
    """The consumer, or another one where it is gone: nobody reads it while its task waits for those
    before, which may take longer than a server keeps it."""
    replicas = _replicas_without(pinned)
    if not replicas:
        yield pinned
        return
    span = pinned.first, pinned.last
    fresh = pin(pinned.settings, pinned.stream, pinned.peer, replicas, *span)
    try:
        yield fresh
    finally:
        with JetStream(ConnectionOptions(pinned.settings, OUTAGE_NS)) as js:
            unpin(js, fresh)


def _replicas_without(pinned: Pinned) -> int:
    """How many replicas the stream has, if it does not have the consumer any more; else none."""
    with JetStream(ConnectionOptions(pinned.settings, OUTAGE_NS)) as js:
        try:
            js.ask("consumer_info", pinned.stream, pinned.consumer)
        except ApiError as error:
            if error.err_code != CONSUMER_NOT_FOUND:
                raise RequestFailed(error, prefix=f"stream {pinned.stream}") from error
            return js.info(pinned.stream).config.num_replicas
    return 0


def _batches(pinned: Pinned) -> "Iterator[pa.RecordBatch]":
    seqs: list[int] = []
    hashes: list[int] = []
    for seq, hashed in _messages(pinned):
        seqs.append(seq)
        hashes.append(hashed)
        if len(seqs) >= ROWS:
            yield _batch(pinned.peer, seqs, hashes)
            seqs, hashes = [], []
    with JetStream(ConnectionOptions(pinned.settings, OUTAGE_NS)) as js:
        leader = leader_of(js, pinned)
    if leader != pinned.peer:
        raise Unreachable(
            f"the consumer of {pinned.peer} moved to {leader or 'nobody'} while it was read",
            hints=("run the audit again when the cluster is quiet",),
        )
    if seqs:
        yield _batch(pinned.peer, seqs, hashes)


def _batch(peer: str, seqs: list[int], hashes: list[int]) -> "pa.RecordBatch":
    import pyarrow as pa

    columns = [
        pa.array([peer] * len(seqs)),
        pa.array(seqs, pa.int64()),
        pa.array(hashes, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["peer", "seq", "hash"])


def _messages(pinned: Pinned) -> Iterator[tuple[int, int]]:
    """(seq, hash) of each message.

    Invariant: the consumer's own sequence counts them from 1, so one that was lost on its way, or
    a task that is run again after the consumer was read, is not taken for a hole in the replica.
    """
    wire = open_wire(pinned.settings)
    prefix = api_prefix(pinned.settings)
    subject = api_subject("consumer_msg_next", pinned.stream, pinned.consumer, prefix=prefix)
    position, heard, delivered = pinned.first - 1, time.monotonic(), 0
    try:
        while position < pinned.last and time.monotonic() - heard < BEHIND_S:
            for ack, hashed in _pulled(wire, subject, pinned):
                delivered += 1
                if ack.consumer_seq != delivered:
                    raise Unreachable(
                        f"{pinned.peer}: messages of {pinned.stream} were lost on their way",
                        hints=("run the audit again",),
                    )
                position, heard = ack.stream_seq, time.monotonic()
                if position <= pinned.last:
                    yield position, hashed
            if position < pinned.last and _is_at_end(pinned):
                return
    finally:
        wire.close()


def _pull_bytes(wire: Wire) -> int:
    """Enough for the largest message that the server takes, which would never come otherwise."""
    return max(PULL_BYTES, 2 * int(str(wire.info.get("max_payload", 0))))


def _is_at_end(pinned: Pinned) -> bool:
    """Whether the replica has nothing left to deliver and is not behind."""
    with JetStream(ConnectionOptions(pinned.settings, OUTAGE_NS)) as js:
        if _info(js, pinned).num_pending:
            return False
        cluster = js.info(pinned.stream).cluster
    followers = cluster.replicas if cluster is not None else ()
    return all(one.current for one in followers if one.name == pinned.peer)


def _pulled(wire: Wire, subject: bytes, pinned: Pinned) -> Iterator[tuple[AckSubject, int]]:
    """The messages that one pull request gets, each with its hash."""
    reply = f"{wire.inbox}.{secrets.token_hex(4)}".encode()
    request = json.dumps(
        {
            "batch": PULL,
            "max_bytes": _pull_bytes(wire),
            "expires": int(EXPIRES_S * 1e9),
            "no_wait": True,
        }
    ).encode()
    wire.send(b"PUB %s %s %d\r\n%s\r\n" % (subject, reply, len(request), request))
    deadline = time.monotonic() + 2 * EXPIRES_S + pinned.settings.timeout
    got = 0
    while got < PULL:
        message = wire.receive(deadline)
        ack = parse_ack(message.reply)
        if ack is None:
            if message.status:
                return
            continue
        got += 1
        yield ack, content_hash(message.subject, message.headers, message.payload, ack.time_ns)


def content_hash(subject: bytes, headers: bytes, payload: bytes, time_ns: int) -> int:
    """64 bits of all that a replica stores of a message, as a signed number."""
    head = b"%d %d %d %d " % (len(subject), len(headers), len(payload), time_ns)
    digest = blake2b(head + subject + headers + payload, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
