"""Runs `jsctl traffic`: what kinds of messages a listener gets, counted each second."""

from collections import Counter, deque
from typing import TYPE_CHECKING

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import repeated
from jsctl.render.humanize import number, size
from jsctl.render.table import table

if TYPE_CHECKING:
    from nats.aio.msg import Msg

ROWS_MAX = 11
INTERVAL_S = 1
INTERRUPTED = 130
"""It has no other end; `nats` is ended by the signal, of which a shell makes the same."""
KINDS = (
    ("$SYS.", "General", "System"),
    ("$JSC.ARU.", "Cluster", "JSA Update"),
    ("$JSC.CI.", "Cluster", "Consumer Info"),
    ("$JSC.SI.", "Cluster", "Stream Info"),
    ("$JSC.ACK.", "Cluster", "Reply"),
    ("$JSC.R.", "Cluster", "Reply"),
    ("$JSC.SYNC", "Cluster", "Stream Sync"),
    ("$NRG.V.", "Raft", "Vote"),
    ("$NRG.AE.", "Raft", "Append"),
    ("$NRG.P.", "Raft", "Proposal"),
    ("$NRG.RP.", "Raft", "Remove Peer"),
    ("$NRG.R.", "Raft", "Reply"),
    ("$JS.ACK.", "General", "JS ACK"),
    ("$JS.API.", "General", "JS API"),
)
"""How a subject begins, and where its message is counted."""

TABLES = {
    "Raft": ("Vote", "Append", "Reply", "Remove Peer", "Proposal"),
    "Cluster": ("JSA Update", "Stream Info", "Consumer Info", "Stream Sync", "Reply"),
    "General": ("Requests", "JS API", "JS ACK", "System", "Rest"),
}


def kind_of(subject: str, reply: str) -> tuple[str, str]:
    """The table and column of a message."""
    for start, group, column in KINDS:
        if subject.startswith(start):
            return group, column
    return "General", "Requests" if reply else "Rest"


async def traffic(call: Call) -> int:
    """Counts until Ctrl-C; tables without a message are left out, but for the last one."""
    counts: Counter[tuple[str, str]] = Counter()
    total_bytes = 0
    shown: dict[str, deque[list[str]]] = {name: deque(maxlen=ROWS_MAX) for name in TABLES}

    async def take(message: "Msg") -> None:
        nonlocal total_bytes
        counts[kind_of(message.subject, message.reply)] += 1
        total_bytes += len(message.data)

    async def draw(call: Call) -> None:
        if call.output.machine:
            found = {
                f"{group}.{column}": counts[group, column]
                for group, columns in TABLES.items()
                for column in columns
            }
            call.output.json_line({**found, "bytes": total_bytes})
            return
        for name, columns in TABLES.items():
            cells = [counts[name, column] for column in columns]
            if not any(cells) and name != "General":
                continue
            heads = [*columns, *(["Total Bytes"] if name == "General" else []), "Total Messages"]
            more = [size(total_bytes)] if name == "General" else []
            shown[name].append([*map(number, cells), *more, number(sum(cells))])
            title = f"{name} Traffic"
            call.output.print(table(heads, list(shown[name]), title=title) + "\n")

    async with call.client() as client:
        await client.subscribe(
            call.text("subjects"), cb=take, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        await repeated(call, draw, INTERVAL_S, at_once=False)
    return INTERRUPTED
