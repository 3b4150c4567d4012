"""Infos of streams as text; see the package."""

from collections.abc import Sequence

from jsctl.api.fields import ZERO_TIME
from jsctl.api.stream import LostData, SourceInfo
from jsctl.api.times import format_time
from jsctl.broker.handlers.told.words import moment, text_of
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.streams.stream import Stream, every_seq


def begun(config: bytes, created_ns: int) -> str:
    """What an info begins with, and what of it stays as it is."""
    return f'{{"config":{config.decode()},"created":"{format_time(created_ns)}","state":'


def info_text(
    view: View,
    found: StreamAssignment,
    stream: Stream,
    begins: str,
    upstreams: Sequence[SourceInfo],
    *,
    domain: str = "",
    cluster: str = "",
) -> str:
    """The whole info; `cluster` is a member of it, see `words`."""
    state = state_text(stream, view.meta.consumer_count(found.account, found.name))
    damage = view.damage(found.group)
    more = f',"domain":{text_of(domain)}{cluster}' if domain else cluster
    if upstreams:
        is_mirror = found.config.mirror is not None
        more += (
            f',"mirror":{text_of(upstreams[0])}'
            if is_mirror
            else f',"sources":[{",".join(map(text_of, upstreams))}]'
        )
    end = f',"jsctl_damage":[{",".join(map(text_of, damage))}]' if damage else ""
    return f'{begins}{state}{more},"ts":"{moment(view.now_ns)}"{end}}}'


def state_text(stream: Stream, consumers: int) -> str:
    """What a stream holds, without its subjects and what was removed between others."""
    found = stream.store.state()
    messages, last = found.messages, found.last_seq
    first = found.first_seq if last or stream.config.first_seq else 0
    first_time = format_time(found.first_time_ns) if messages else ZERO_TIME
    last_time = format_time(found.last_time_ns)
    more = f',"num_subjects":{found.num_subjects}' if found.num_subjects else ""
    if found.num_deleted:
        more += f',"num_deleted":{found.num_deleted}'
    if found.lost:
        more += f',"lost":{text_of(LostData(msgs=every_seq(found.lost)))}'
    return (
        f'{{"messages":{messages},"bytes":{found.bytes},"first_seq":{first}'
        f',"first_ts":"{first_time}","last_seq":{last},"last_ts":"{last_time}"{more}'
        f',"consumer_count":{consumers}}}'
    )
