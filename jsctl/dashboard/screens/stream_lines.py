"""The panels at the left of a stream's view."""

from collections.abc import Sequence

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, fitted, short, short_names, short_time
from jsctl.dashboard.model.snapshot import Level, Peer, PeerState, Snapshot, Stream
from jsctl.render.humanize import number, size

LABEL = 10


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
    lines = [cells.pair(label, value, ink, LABEL) for label, value in rows]
    spark = cells.spark(stream.trend, max(4, width - LABEL - 10), ink, "flow")
    spark.append(f" {short(stream.rate)}", ink.text)
    lines.append(cells.pair("in/s", spark, ink, LABEL))
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


def peer_lines(peers: Sequence[Peer], ink: Ink, width: int) -> list[Text]:
    """One line a replica: state, lag, when it was heard."""
    names = short_names([peer.name for peer in peers])
    room = max((len(name) for name in names.values()), default=0)
    top = max((peer.lag for peer in peers), default=0)
    lines = []
    for peer in peers:
        star = peer.state is PeerState.LEADER
        levels = {PeerState.BEHIND: Level.WARN, PeerState.OFFLINE: Level.BAD}
        level = levels.get(peer.state, Level.OK)
        mark = ink.glyphs.leader if star else ink.glyphs.level(level)
        line = Text(f"{mark} ", ink.colour("star") if star else ink.level(level), end="")
        line.append(f"{clean(names[peer.name]):<{room}}  ", f"bold {ink.text}")
        line.append(f"{peer.state.value:<8} ", ink.level(level) if level else ink.muted)
        share = 0.0 if level is Level.BAD else 1 - (peer.lag / top * 0.9 if top else 0)
        line.append_text(cells.bar(share, max(3, width - room - 24), ink, ink.level(level)))
        seen = f"-{short(peer.lag)}" if peer.lag else short_time(peer.active_ns)
        line.append(f" {seen if not star else '':>8}", ink.muted)
        lines.append(line)
    return lines or [Text("no replicas known", ink.muted)]
