"""The panels at the left of a stream's view."""

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.members import peer_lines
from jsctl.dashboard.look.words import clean, fitted, short, short_time
from jsctl.dashboard.model.snapshot import Level, Snapshot, Stream
from jsctl.render.humanize import number, size


def _ago(then_ns: int, now_ns: int) -> str:
    return f"{short_time(max(0, now_ns - then_ns))} ago" if then_ns else "never"


def state_lines(key: str, now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """What the stream holds."""
    stream = now.stream(key)
    if stream is None:
        return [Text("this stream is gone", ink.level(Level.BAD))]
    limit = f" of {size(stream.bytes_max)}" if stream.bytes_max > 0 else ""
    rows: list[tuple[str, Text | str]] = [
        ("subjects", Text(fitted(clean(", ".join(stream.subjects)), width - 12), "bold")),
        ("messages", number(stream.messages)),
        ("bytes", f"{size(stream.bytes)}{limit}"),
        ("first", number(stream.first_seq)),
        (
            "last",
            f"{number(stream.last_seq)} {ink.glyphs.dot} {_ago(stream.last_ns, now.taken_ns)}",
        ),
        ("subjects", f"{number(stream.num_subjects)} distinct"),
        ("kept", f"{stream.retention} {ink.glyphs.dot} {stream.storage}"),
        ("deleted", number(stream.deleted)),
    ]
    rows += [(_word(one.mirror), _source(stream, at, ink)) for at, one in enumerate(stream.sources)]
    if stream.level:
        rows.append(("state", Text(clean(stream.why), ink.level(stream.level))))
    lines = [cells.pair(label, value, ink, cells.LABEL) for label, value in rows]
    spark = cells.spark(stream.trend, max(4, width - cells.LABEL - 10), ink, "flow")
    spark.append(f" {short(stream.rate)}", ink.text)
    lines.append(cells.pair("in/s", spark, ink, cells.LABEL))
    return lines


def _word(mirror: bool) -> str:
    return "mirror of" if mirror else "source"


def _source(stream: Stream, at: int, ink: Ink) -> Text:
    source = stream.sources[at]
    text = Text(clean(source.name), ink.text)
    text.append(f"  {short(source.lag)} behind" if source.lag else "  in sync", ink.muted)
    if source.error:
        text.append(f"  {clean(source.error)}", ink.level(Level.WARN))
    return text


def group_lines(key: str, now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """The replicas of a stream."""
    stream = now.stream(key)
    return peer_lines(stream.peers if stream else (), ink, width)
