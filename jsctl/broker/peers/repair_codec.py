"""Items of peer frames that speak of damage <-> bytes."""

from jsctl.broker.errors import ProtocolError
from jsctl.broker.peers.frame_codec import FrameReader, FrameWriter, read_ranges, write_ranges
from jsctl.broker.peers.items import (
    AuditAnswer,
    AuditRequest,
    CheckRequest,
    DamagedReplica,
    DamagedReplicas,
    RangeAnswer,
    RangeRequest,
    ReplicaReport,
)


def write_damaged(out: FrameWriter, item: DamagedReplicas) -> None:
    """Which replicas of a server have damage."""

    def write(one: DamagedReplica) -> None:
        out.text(one.group)
        out.u64(one.messages)
        out.u64(one.lost)
        write_ranges(out, one.ranges)

    out.each(item.replicas, write)


def read_damaged(data: FrameReader) -> DamagedReplicas:
    """Inverse."""

    def read() -> DamagedReplica:
        return DamagedReplica(data.text(), data.u64(), data.u64(), read_ranges(data))

    return DamagedReplicas(tuple(data.each(read)))


def write_wanted(out: FrameWriter, item: RangeRequest) -> None:
    """A question for messages."""
    out.small(item.key)
    out.u64(item.token)
    write_ranges(out, item.ranges)


def read_wanted(data: FrameReader) -> RangeRequest:
    """Inverse."""
    return RangeRequest(data.small(), data.u64(), read_ranges(data))


def write_found(out: FrameWriter, item: RangeAnswer) -> None:
    """Its answer."""
    out.small(item.key)
    for number in (item.token, item.index, item.up_to):
        out.u64(number)
    write_ranges(out, item.lost)
    out.each(item.frames, out.large)


def read_found(data: FrameReader) -> RangeAnswer:
    """Inverse."""
    key, token, index, up_to = data.small(), data.u64(), data.u64(), data.u64()
    return RangeAnswer(key, token, index, up_to, read_ranges(data), data.each(data.large))


def write_check(out: FrameWriter, item: CheckRequest) -> None:
    """A request for a check."""
    out.small(item.key)
    out.u64(item.token)


def read_check(data: FrameReader) -> CheckRequest:
    """Inverse."""
    return CheckRequest(data.small(), data.u64())


def write_report(out: FrameWriter, item: ReplicaReport) -> None:
    """What a replica says of itself."""
    out.small(item.key)
    out.u64(item.token)
    out.flag(item.done)
    for number in (item.read, item.total, item.findings, item.repaired):
        out.u64(number)
    write_ranges(out, item.damaged)
    write_ranges(out, item.lost)
    out.each([index for index, _ in item.digests], out.u64)
    out.each([digest for _, digest in item.digests], out.small)


def read_report(data: FrameReader) -> ReplicaReport:
    """Inverse."""
    key, token, done = data.small(), data.u64(), data.flag()
    numbers = data.u64(), data.u64(), data.u64(), data.u64()
    damaged, lost = read_ranges(data), read_ranges(data)
    indexes, digests = data.each(data.u64), data.each(data.small)
    if len(indexes) != len(digests):
        raise ProtocolError("peer frame: as many digests as indexes")
    told = list(zip(indexes, digests, strict=True))
    return ReplicaReport(key, token, done, *numbers, damaged, lost, told)


def write_audit(out: FrameWriter, item: AuditRequest) -> None:
    """A question for what a replica has."""
    out.small(item.key)
    for number in (item.token, item.entry, item.first, item.last):
        out.u64(number)
    out.flag(item.chained)


def read_audit(data: FrameReader) -> AuditRequest:
    """Inverse."""
    key, token, entry, first, last = data.small(), *(data.u64() for _ in range(4))
    return AuditRequest(key, token, entry, first, last, data.flag())


def write_audited(out: FrameWriter, item: AuditAnswer) -> None:
    """Its answer."""
    out.small(item.key)
    for number in (item.token, item.index, item.up_to, item.end, item.count):
        out.u64(number)
    out.small(item.digest)
    write_ranges(out, item.damaged)
    out.small(item.link)
    out.each([seq for seq, _ in item.breaks], out.u64)
    out.each([why for _, why in item.breaks], out.text)


def read_audited(data: FrameReader) -> AuditAnswer:
    """Inverse."""
    key = data.small()
    numbers = data.u64(), data.u64(), data.u64(), data.u64(), data.u64()
    digest, damaged, link = data.small(), read_ranges(data), data.small()
    seqs, reasons = data.each(data.u64), data.each(data.text)
    if len(seqs) != len(reasons):
        raise ProtocolError("peer frame: as many reasons as breaks")
    breaks = list(zip(seqs, reasons, strict=True))
    return AuditAnswer(key, *numbers, digest, damaged, link, breaks)
