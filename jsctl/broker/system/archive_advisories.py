"""Advisories of snapshots and restores: (subject, payload) to publish."""

from jsctl.api.codec import dumps
from jsctl.api.events import (
    RestoreCompleteAdvisory,
    RestoreCreateAdvisory,
    SnapshotCompleteAdvisory,
    SnapshotCreateAdvisory,
)
from jsctl.api.stream import StreamState
from jsctl.api.subjects import advisory
from jsctl.api.times import format_time
from jsctl.broker.assets.replicas.facts import ArchiveEvent, ArchiveNews
from jsctl.broker.jetstream.advisories import Advisories, Message, client_body

Body = (
    SnapshotCreateAdvisory
    | SnapshotCompleteAdvisory
    | RestoreCreateAdvisory
    | RestoreCompleteAdvisory
)


def archive_message(build: Advisories, news: ArchiveNews) -> Message:
    """What is told of a snapshot or restore that began or ended."""
    return advisory("STREAM", news.event.value, news.stream), dumps(_body(build, news))


def _body(build: Advisories, news: ArchiveNews) -> Body:
    client, stream, domain = client_body(news.client), news.stream, build.domain
    head = build.head(news.event.value.lower())
    start, end = format_time(news.began_ns), format_time(build.now_ns)
    match news.event:
        case ArchiveEvent.SNAPSHOT_CREATE:
            state = news.state or StreamState()
            return SnapshotCreateAdvisory(
                head=head, stream=stream, state=state, client=client, domain=domain
            )
        case ArchiveEvent.SNAPSHOT_COMPLETE:
            return SnapshotCompleteAdvisory(
                head=head,
                stream=stream,
                start=start,
                end=end,
                client=client,
                domain=domain,
                error=news.error,
            )
        case ArchiveEvent.RESTORE_CREATE:
            return RestoreCreateAdvisory(head=head, stream=stream, client=client, domain=domain)
        case ArchiveEvent.RESTORE_COMPLETE:
            return RestoreCompleteAdvisory(
                head=head,
                stream=stream,
                start=start,
                end=end,
                bytes=news.bytes,
                client=client,
                domain=domain,
            )
