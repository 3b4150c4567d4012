"""The members of a raft group, line by line."""

from collections.abc import Sequence

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, short, short_bytes, short_names, short_time
from jsctl.dashboard.model.snapshot import Level, Peer, PeerState, RaftGroup
from jsctl.render.humanize import number

HEADS = ("server", "state", "term", "committed", "applied", "behind", "log", "snapshot", "")


def member_table(group: RaftGroup, ink: Ink, width: int) -> Text:
    """Facts of the group, then a line for each member."""
    text = Text()
    facts = (
        ("group", group.name),
        ("of", group.asset or "?"),
        ("account", group.account),
        ("leader", group.leader or "nobody"),
        ("term", str(group.term)),
        ("quorum", f"{group.need} of {group.size}"),
        ("committed", number(group.committed)),
    )
    for label, value in facts:
        text.append(f"{label:>10}  ", ink.muted)
        text.append(f"{clean(value)}\n", ink.text)
    if group.level:
        text.append(f"{'state':>10}  ", ink.muted)
        text.append(f"{clean(group.why)}\n", ink.level(group.level))
    rows = [HEADS, *(_cells(group, at) for at in range(len(group.members)))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADS))]
    text.append("\n")
    for at, row in enumerate(rows):
        line = "  ".join(
            cell.ljust(widths[place]) if place < 2 else cell.rjust(widths[place])
            for place, cell in enumerate(row)
        )
        leads = at > 0 and group.members[at - 1].server == group.leader
        colour = ink.muted if at == 0 else ink.colour("star") if leads else ink.text
        text.append(f"{line[:width]}\n", colour)
        if at and group.members[at - 1].error:
            text.append(f"  {clean(group.members[at - 1].error)}\n", ink.level(Level.BAD))
    return text


def _cells(group: RaftGroup, at: int) -> tuple[str, ...]:
    one = group.members[at]
    behind = max(0, group.committed - one.applied)
    seen = f"seen {short_time(one.seen_ns)} ago" if one.seen_ns > 0 else ""
    return (
        clean(one.server),
        one.state,
        str(one.term or ""),
        number(one.committed),
        number(one.applied),
        number(behind) if behind else "-",
        f"{number(one.log_entries)} ({short_bytes(one.log_bytes)})",
        number(one.snapshot_index),
        "catching up" if one.catching_up else seen,
    )


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
