"""The peer frame: everything one broker has for another in a turn, as one routed message.

    frame   magic "JB", version u8, sender length u8, CRC-32 of all behind it u32, sender, items
    item    kind u8, length u32, body

Items of an unknown kind are skipped, so that brokers of neighbouring versions understand each
other; a change of an item's fields takes a new kind. What does not decode raises ProtocolError
and nothing else. A frame is split between items at `FRAME_BYTES_MAX`; an item stays whole, so
chunks of state are to be cut to `CHUNK_BYTES_MAX` by whoever makes them.
"""

import struct
import zlib
from collections.abc import Callable, Iterable

from jsctl.broker.checksums import Checksums
from jsctl.broker.errors import ProtocolError
from jsctl.broker.jetstream.meta.entries import check_entry
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.peers import asker_codec, repair_codec, use_items, work_items
from jsctl.broker.peers.frame_codec import FrameReader, FrameWriter
from jsctl.broker.peers.items import (
    Announcement,
    Answered,
    ApiCount,
    AuditAnswer,
    AuditRequest,
    CheckRequest,
    ChunkKind,
    DamagedReplicas,
    DiskRoom,
    Eviction,
    Forward,
    ForwardReply,
    Founding,
    GatherReply,
    GatherRequest,
    Introduced,
    Introduction,
    Item,
    MetaProposal,
    PeerFrame,
    PeerHeartbeat,
    RaftBatch,
    RangeAnswer,
    RangeRequest,
    ReplicaReport,
    Returned,
    ServerNews,
    StateAck,
    StateChunk,
)
from jsctl.broker.peers.use_items import AccountUse, TierUse
from jsctl.broker.peers.work_items import FinishedSeqs, WorkQuestion
from jsctl.broker.pieces import Piece, gathered, total
from jsctl.dataclass import replace

MAGIC = b"JB"
VERSION = 1
FRAME_BYTES_MAX = 4 * 1024 * 1024
"""A frame is closed before an item would take it beyond this."""
CHUNK_BYTES_MAX = 1024 * 1024
"""Payload of one chunk of state."""

_HEAD = struct.Struct("<2sBBI")
_ITEM = struct.Struct("<BI")
_SMALL = struct.Struct("<H")
_LARGE = struct.Struct("<I")


def encode_frames(
    frame: PeerFrame, checksums: Checksums, bytes_max: int = FRAME_BYTES_MAX
) -> list[list[Piece]]:
    """The frame in pieces; more than one only when it is larger than `bytes_max`.

    Empty when there is nothing to say. `checksums` is shared by frames that are made together.
    """
    return encode_items(frame.sender.encode(), frame.items(), checksums, bytes_max)


def encode_items(
    sender: bytes, items: Iterable[Item], checksums: Checksums, bytes_max: int = FRAME_BYTES_MAX
) -> list[list[Piece]]:
    """The same of items, what is urgent first."""
    done: list[list[Piece]] = []
    parts: list[Piece] = []
    size = 0
    for item in items:
        kind, write, _ = _KINDS[type(item)]
        out = FrameWriter()
        write(out, item)
        length = total(out.parts)
        if parts and size + length + _ITEM.size > bytes_max:
            done.append(_seal(sender, parts, checksums))
            parts, size = [], 0
        parts.append(_ITEM.pack(kind, length))
        parts += out.parts
        size += length + _ITEM.size
    if parts:
        done.append(_seal(sender, parts, checksums))
    return done


def decode_frame(data: bytes) -> PeerFrame:
    """Read a frame. Raises ProtocolError when it is damaged, cut or of another version."""
    if len(data) < _HEAD.size:
        raise ProtocolError("peer frame: cut short")
    magic, version, sender_length, checksum = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ProtocolError("peer frame: not a peer frame")
    if version != VERSION:
        raise ProtocolError(f"peer frame: version {version} is not {VERSION}")
    if zlib.crc32(memoryview(data)[_HEAD.size :]) != checksum:
        raise ProtocolError("peer frame: checksum does not match")
    at = _HEAD.size + sender_length
    try:
        frame = PeerFrame(sender=data[_HEAD.size : at].decode())
    except UnicodeDecodeError as error:
        raise ProtocolError("peer frame: sender is no UTF-8") from error
    while at < len(data):
        at = _decode_item(data, at, frame)
    if at != len(data):
        raise ProtocolError("peer frame: cut short")
    return frame


def _seal(sender: bytes, parts: list[Piece], checksums: Checksums) -> list[Piece]:
    body = gathered((sender, *parts))
    return [_HEAD.pack(MAGIC, VERSION, len(sender), checksums.of(body)), *body]


def _decode_item(data: bytes, at: int, frame: PeerFrame) -> int:
    """Read the item at `at` into the frame; returns where the next one starts."""
    if at + _ITEM.size > len(data):
        raise ProtocolError("peer frame: cut short")
    kind, length = _ITEM.unpack_from(data, at)
    at += _ITEM.size
    end: int = at + length
    if end > len(data):
        raise ProtocolError("peer frame: cut short")
    if kind == _RAFT:
        frame.raft.append(_read_raft(data, at, end))
    elif (read := _READERS.get(kind)) is not None:
        reader = FrameReader(data, at, end)
        frame.add(read(reader))
        reader.finish()
    return end


def _write_heartbeat(out: FrameWriter, item: PeerHeartbeat) -> None:
    for number in (item.boot, item.incarnation, item.sequence, item.echo, item.echo_held_ns):
        out.u64(number)
    out.flag(item.leaving)


def _read_heartbeat(data: FrameReader) -> PeerHeartbeat:
    return PeerHeartbeat(data.u64(), data.u64(), data.u64(), data.u64(), data.u64(), data.flag())


def _write_raft(out: FrameWriter, item: RaftBatch) -> None:
    out.small(item.group)
    out.pieces(item.messages)


def _read_raft(data: bytes, at: int, end: int) -> RaftBatch:
    """As a `FrameReader` would, without its steps: nearly all items are such."""
    middle = at + _SMALL.size
    if middle <= end:
        middle += _SMALL.unpack_from(data, at)[0]
    start = middle + _LARGE.size
    if start > end:
        raise ProtocolError("peer frame: cut short")
    if _LARGE.unpack_from(data, middle)[0] != end - start:
        raise ProtocolError("peer frame: messages of a group do not fill their item")
    return RaftBatch(data[at + _SMALL.size : middle], (memoryview(data)[start:end],))


def _write_announcement(out: FrameWriter, item: Announcement) -> None:
    out.text(item.group)
    out.u64(item.term)
    out.text(item.leader)


def _read_announcement(data: FrameReader) -> Announcement:
    return Announcement(data.text(), data.u64(), data.text())


def _write_forward(out: FrameWriter, item: Forward) -> None:
    request = item.request
    out.u64(item.hops)
    out.u64(item.age_ns)
    out.text(request.account)
    out.small(request.subject)
    out.small(request.reply)
    out.large(request.headers)
    out.large(request.payload)
    asker_codec.write_client(out, request.client)
    out.text(request.entry)
    out.flag(request.system)
    asker_codec.write_claims(out, request.client.claims)


def _read_forward(data: FrameReader) -> Forward:
    hops, age_ns = data.u64(), data.u64()
    request = ApiRequest(
        account=data.text(),
        subject=data.small(),
        reply=data.small(),
        headers=data.large(),
        payload=data.large(),
        client=asker_codec.read_client(data),
        entry=data.text(),
        system=data.flag(),
    )
    if data.left:
        client = replace(request.client, claims=asker_codec.read_claims(data))
        request = replace(request, client=client)
    return Forward(hops, request, age_ns)


def _write_reply(out: FrameWriter, item: ForwardReply) -> None:
    out.text(item.account)
    out.small(item.reply)
    out.large(item.headers)
    out.large(item.payload)


def _read_reply(data: FrameReader) -> ForwardReply:
    return ForwardReply(data.text(), data.small(), data.large(), data.large())


_FACT_NUMBERS = (
    "store_max",
    "store_used",
    "store_reserved",
    "memory_max",
    "memory_used",
    "memory_reserved",
    "streams",
    "ha_assets",
    "ha_assets_max",
)


def _write_news(out: FrameWriter, item: ServerNews) -> None:
    facts = item.facts
    for text in (facts.peer, facts.name, facts.cluster, facts.domain):
        out.text(text)
    out.each(facts.tags, out.text)
    for flag in (facts.online, facts.known, facts.jetstream):
        out.flag(flag)
    for name in _FACT_NUMBERS:
        out.i64(getattr(facts, name))
    out.u64(facts.incarnation)
    out.u64(facts.boot)
    for text in (item.server_id, item.host, item.version):
        out.text(text)
    out.flag(item.lame_duck)


def _read_news(data: FrameReader) -> ServerNews:
    peer, name, cluster, domain = data.text(), data.text(), data.text(), data.text()
    tags = tuple(data.each(data.text))
    online, known, jetstream = data.flag(), data.flag(), data.flag()
    numbers = {name: data.i64() for name in _FACT_NUMBERS}
    facts = ServerFacts(
        peer=peer,
        name=name,
        cluster=cluster,
        domain=domain,
        tags=tags,
        online=online,
        known=known,
        jetstream=jetstream,
        disk_full=False,  # `DiskRoom` tells.
        incarnation=data.u64(),
        boot=data.u64(),
        **numbers,
    )
    return ServerNews(facts, data.text(), data.text(), data.text(), data.flag())


def _write_gather(out: FrameWriter, item: GatherRequest) -> None:
    out.u64(item.token)
    out.text(item.account)
    out.each([name for asset in item.assets for name in asset], out.text)


def _read_gather(data: FrameReader) -> GatherRequest:
    token, account, names = data.u64(), data.text(), data.each(data.text)
    if len(names) % 2:
        raise ProtocolError("peer frame: an asset without consumer name")
    return GatherRequest(token, account, list(zip(names[::2], names[1::2], strict=True)))


def _write_gathered(out: FrameWriter, item: GatherReply) -> None:
    def one(info: tuple[str, str, bytes]) -> None:
        out.text(info[0])
        out.text(info[1])
        out.large(info[2])

    out.u64(item.token)
    out.each(item.infos, one)
    out.flag(item.more)


def _read_gathered(data: FrameReader) -> GatherReply:
    token = data.u64()
    infos = data.each(lambda: (data.text(), data.text(), data.large()))
    return GatherReply(token, infos, data.flag())


def _write_chunk(out: FrameWriter, item: StateChunk) -> None:
    assert len(item.payload) <= CHUNK_BYTES_MAX
    out.small(item.key)
    out.u64(item.transfer)
    out.u8(item.kind)
    for number in (item.offset, item.index, item.term):
        out.u64(number)
    out.small(item.members)
    out.large(item.payload)


def _read_chunk(data: FrameReader) -> StateChunk:
    key, transfer, kind = data.small(), data.u64(), data.u8()
    if kind not in ChunkKind.__members__.values():
        raise ProtocolError(f"peer frame: chunk of unknown kind {kind}")
    offset, index, term = data.u64(), data.u64(), data.u64()
    members, payload = data.small(), data.large()
    return StateChunk(key, transfer, ChunkKind(kind), offset, index, term, members, payload)


def _write_ack(out: FrameWriter, item: StateAck) -> None:
    out.small(item.key)
    out.u64(item.transfer)
    out.u64(item.offset)
    out.flag(item.done)
    out.text(item.failed)


def _read_ack(data: FrameReader) -> StateAck:
    return StateAck(data.small(), data.u64(), data.u64(), data.flag(), data.text())


def _write_introduction(out: FrameWriter, item: Introduction) -> None:
    out.small(item.key)
    out.u64(item.token)
    out.u64(item.seen)


def _read_introduction(data: FrameReader) -> Introduction:
    return Introduction(data.small(), data.u64(), data.u64())


def _write_introduced(out: FrameWriter, item: Introduced) -> None:
    out.u64(item.token)


def _read_introduced(data: FrameReader) -> Introduced:
    return Introduced(data.u64())


def _write_founding(out: FrameWriter, item: Founding) -> None:
    out.text(item.meta_id)
    out.each(item.members, out.text)
    out.each(item.lives, out.u64)


def _read_founding(data: FrameReader) -> Founding:
    founding = Founding(data.text(), tuple(data.each(data.text)), tuple(data.each(data.u64)))
    if len(founding.members) != len(founding.lives):
        raise ProtocolError("peer frame: a founder without its life")
    return founding


def _write_proposal(out: FrameWriter, item: MetaProposal) -> None:
    out.each(item.entries, out.large)


def _read_proposal(data: FrameReader) -> MetaProposal:
    entries = data.each(data.large)
    for entry in entries:
        check_entry(entry)
    return MetaProposal(entries)


def _write_eviction(out: FrameWriter, item: Eviction) -> None:
    out.u64(item.life)


def _read_eviction(data: FrameReader) -> Eviction:
    return Eviction(data.u64())


def _write_answered(out: FrameWriter, item: Answered) -> None:
    out.text(item.account)
    out.small(item.reply)


def _read_answered(data: FrameReader) -> Answered:
    return Answered(data.text(), data.small())


def _write_returned(out: FrameWriter, item: Returned) -> None:
    out.text(item.account)
    out.small(item.reply)
    out.small(item.subject)
    out.flag(item.untouched)


def _read_returned(data: FrameReader) -> Returned:
    return Returned(data.text(), data.small(), data.small(), data.flag())


def _write_count(out: FrameWriter, item: ApiCount) -> None:
    out.u64(item.sent)
    out.u64(item.missed)
    out.flag(item.words)


def _read_count(data: FrameReader) -> ApiCount:
    return ApiCount(data.u64(), data.u64(), data.flag())


def _write_room(out: FrameWriter, item: DiskRoom) -> None:
    out.flag(item.full)


def _read_room(data: FrameReader) -> DiskRoom:
    return DiskRoom(data.flag())


# Numbers are part of the format: never reused, never changed. 11 was of what is sent no more.
_KINDS: dict[type, tuple[int, Callable[..., None], Callable[[FrameReader], Item] | None]] = {
    PeerHeartbeat: (1, _write_heartbeat, _read_heartbeat),
    RaftBatch: (2, _write_raft, None),  # Read where it is.
    Announcement: (3, _write_announcement, _read_announcement),
    Forward: (4, _write_forward, _read_forward),
    ForwardReply: (5, _write_reply, _read_reply),
    ServerNews: (6, _write_news, _read_news),
    GatherRequest: (7, _write_gather, _read_gather),
    GatherReply: (8, _write_gathered, _read_gathered),
    StateChunk: (9, _write_chunk, _read_chunk),
    StateAck: (10, _write_ack, _read_ack),
    Founding: (12, _write_founding, _read_founding),
    MetaProposal: (13, _write_proposal, _read_proposal),
    AccountUse: (14, use_items.write_account, use_items.read_account),
    Eviction: (15, _write_eviction, _read_eviction),
    DamagedReplicas: (22, repair_codec.write_damaged, repair_codec.read_damaged),
    Answered: (21, _write_answered, _read_answered),
    ApiCount: (26, _write_count, _read_count),
    Returned: (23, _write_returned, _read_returned),
    RangeRequest: (16, repair_codec.write_wanted, repair_codec.read_wanted),
    RangeAnswer: (17, repair_codec.write_found, repair_codec.read_found),
    CheckRequest: (18, repair_codec.write_check, repair_codec.read_check),
    ReplicaReport: (19, repair_codec.write_report, repair_codec.read_report),
    AuditRequest: (24, repair_codec.write_audit, repair_codec.read_audit),
    AuditAnswer: (25, repair_codec.write_audited, repair_codec.read_audited),
    Introduction: (27, _write_introduction, _read_introduction),
    Introduced: (28, _write_introduced, _read_introduced),
    DiskRoom: (29, _write_room, _read_room),
    WorkQuestion: (30, work_items.write_question, work_items.read_question),
    FinishedSeqs: (31, work_items.write_finished, work_items.read_finished),
    TierUse: (32, use_items.write_tier, use_items.read_tier),
}
_READERS = {kind: read for kind, _, read in _KINDS.values() if read is not None}
_RAFT: int = _KINDS[RaftBatch][0]
