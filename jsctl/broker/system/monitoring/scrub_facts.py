"""What is damaged on this server, and how far it is with looking for more."""

from itertools import islice

from jsctl.api.monitoring.jsz import DamagedStream, Scrub, ScrubFinding
from jsctl.api.times import format_time
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.own_news import damage_of
from jsctl.broker.assets.repair.scrubber import Finding
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jsapi.live_view import sequence_ranges

FINDINGS_TOLD = 20


def scrub(engine: Engine) -> Scrub:
    """The scrub of a server."""
    scrubber = engine.upkeep.scrubber
    report, limits = scrubber.report, scrubber.limits
    return Scrub(
        interval=limits.interval_ns,
        rate=limits.bytes_per_second,
        running=scrubber.in_pass,
        passes=report.passes,
        began=_time(report.began_ns),
        ended=_time(report.ended_ns),
        bytes=report.bytes_read,
        total=max(report.bytes_total, report.bytes_read),
        repaired=sum(engine.upkeep.repairs.repaired.values()),
        found=report.found,
        findings=tuple(
            _finding(engine, one) for one in islice(reversed(report.findings), FINDINGS_TOLD)
        ),
        damaged=_damaged(engine),
    )


def _time(time_ns: int) -> str:
    return format_time(time_ns) if time_ns else ""


def _finding(engine: Engine, finding: Finding) -> ScrubFinding:
    group = engine.groups.by_name.get(finding.group)
    replica = None if group is None else group.unit
    account = stream = consumer = ""
    if isinstance(replica, StreamReplica):
        account, stream = replica.key
    elif isinstance(replica, ConsumerReplica):
        made = replica.assignment
        account, stream, consumer = made.account, made.stream, made.name
    return ScrubFinding(
        time=format_time(finding.time_ns),
        account=account,
        stream=stream,
        consumer=consumer,
        text=finding.text,
    )


def _damaged(engine: Engine) -> tuple[DamagedStream, ...]:
    found = []
    replicas = engine.assets.streams
    for account, stream in sorted(key for key, one in replicas.items() if one.store.is_damaged):
        one = damage_of(replicas[account, stream])
        found.append(
            DamagedStream(
                account=account,
                stream=stream,
                messages=one.messages,
                lost=one.lost,
                ranges=sequence_ranges(one.ranges),
            )
        )
    return tuple(found)
