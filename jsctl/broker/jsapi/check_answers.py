"""How far the check or the audit of a stream is, as an answer of its leader."""

from collections.abc import Iterable
from itertools import islice

from jsctl.api.codec import dumps
from jsctl.api.responses import (
    ChainBreak,
    ChainHead,
    ReplicaAudit,
    StreamAudit,
    StreamAuditResponse,
    StreamCheckResponse,
    StreamHeadResponse,
)
from jsctl.api.stream import ReplicaCheck, ReplicaDifference, SequenceRange, StreamCheck
from jsctl.api.times import format_time
from jsctl.broker import nkey
from jsctl.broker.assets.repair.audits import Audit, AuditedReplica
from jsctl.broker.assets.repair.stream_checks import StreamCheckup
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.answers import head
from jsctl.broker.handlers.decisions import AuditStream, CheckStream, SignHead
from jsctl.broker.jsapi.live_view import ApiView, sequence_ranges
from jsctl.broker.peers.items import ReplicaReport
from jsctl.dataclass import replace

RANGES_TOLD = 1000


def answer_of(view: ApiView, decision: CheckStream | AuditStream | SignHead) -> bytes:
    """Begin what is wanted, and tell of it."""
    match decision:
        case CheckStream():
            return _check_answer(view, decision)
        case AuditStream():
            return _audit_answer(view, decision)
        case SignHead():
            return _head_answer(view, decision)


def _head_answer(view: ApiView, decision: SignHead) -> bytes:
    chain = ChainHead(
        account=decision.account,
        stream=decision.stream,
        since=decision.since,
        seq=decision.seq,
        hash=decision.link.hex(),
        time=format_time(view.now_ns),
    )
    seed = view.options.jetstream.chain_seed
    if seed:
        signature = nkey.encode_signature(nkey.sign(seed, chain.text))
        chain = replace(chain, key=nkey.public_of(seed), signature=signature)
    return dumps(StreamHeadResponse(head=head("stream_head"), chain=chain))


def _audit_answer(view: ApiView, decision: AuditStream) -> bytes:
    audits = view.engine.upkeep.audits
    group = view.engine.groups.by_name.get(decision.group)
    replica = None if group is None else group.unit
    audit = audits.audits.get((decision.group, decision.chained))
    if decision.start and isinstance(replica, StreamReplica):
        audit = audits.start(replica, chained=decision.chained)
    told = None if audit is None else _audit(view, audit)
    kind = head("stream_verify" if decision.chained else "stream_audit")
    return dumps(StreamAuditResponse(head=kind, audit=told))


def _audit(view: ApiView, audit: Audit) -> StreamAudit:
    replicas = [_audited(view, one) for one in audit.replicas.values()]
    return StreamAudit(
        id=audit.id,
        started=format_time(audit.id),
        done=audit.is_done,
        entry=audit.entry,
        first_seq=max([audit.first, *[one.unproved + 1 for one in audit.replicas.values()]]),
        last_seq=audit.last,
        replicas=tuple(sorted(replicas, key=lambda one: one.name)),
    )


def _audited(view: ApiView, one: AuditedReplica) -> ReplicaAudit:
    first, last = one.difference
    return ReplicaAudit(
        name=view.name_of(one.peer),
        state=one.state.value,
        messages=one.messages,
        up_to=one.begin - 1,
        first=first,
        last=last,
        breaks=tuple([ChainBreak(seq=seq, reason=why) for seq, why in one.breaks]),
        damaged=_ranges(one.damaged.ranges()),
    )


def _check_answer(view: ApiView, decision: CheckStream) -> bytes:
    checks = view.engine.upkeep.checks
    group = view.engine.groups.by_name.get(decision.group)
    replica = None if group is None else group.unit
    checkup = checks.checkups.get(decision.group)
    if decision.start and isinstance(replica, StreamReplica):
        checkup = checks.start(replica)
    told = None if checkup is None else _check(view, checkup)
    if told is not None and checks.differences.searching(decision.group):
        told = replace(told, done=False)
    return dumps(StreamCheckResponse(head=head("stream_check"), check=told))


def _check(view: ApiView, checkup: StreamCheckup) -> StreamCheck:
    replicas = [_replica(view, peer, one) for peer, one in checkup.reports.items()]
    return StreamCheck(
        id=checkup.token,
        started=format_time(checkup.began_ns),
        done=all(one.done or one.offline for one in replicas),
        replicas=tuple(sorted(replicas, key=lambda one: one.name)),
        different=tuple(sorted(map(view.name_of, checkup.replica.different))),
        differences=_differences(view, checkup.replica),
    )


def _differences(view: ApiView, replica: StreamReplica) -> tuple[ReplicaDifference, ...]:
    found = [
        ReplicaDifference(name=view.name_of(peer), entry=one.index, first=one.first, last=one.last)
        for peer, one in replica.different.items()
    ]
    return tuple(sorted(found, key=lambda one: one.name))


def _replica(view: ApiView, peer: str, report: ReplicaReport | None) -> ReplicaCheck:
    offline = not view.engine.cluster.online(peer)
    if report is None:
        return ReplicaCheck(name=view.name_of(peer), offline=offline)
    applied, digest = report.digests[-1] if report.digests else (0, b"")
    return ReplicaCheck(
        name=view.name_of(peer),
        done=report.done,
        offline=offline and not report.done,
        bytes=report.read,
        total=max(report.total, report.read),
        findings=report.findings,
        repaired=report.repaired,
        damaged=_ranges(report.damaged),
        lost=_ranges(report.lost),
        applied=applied,
        digest=digest[::-1].hex(),
    )


def _ranges(ranges: Iterable[tuple[int, int]]) -> tuple[SequenceRange, ...]:
    return sequence_ranges(islice(ranges, RANGES_TOLD))
