"""`top`: a server's load and its connections, as a grid or with a delimiter."""

from collections.abc import Mapping

from jsctl.api.monitoring.connz import ConnInfo, Connz
from jsctl.api.monitoring.varz import Varz
from jsctl.api.times import format_time, parse_time
from jsctl.dataclass import dataclass
from jsctl.render.table import safe

HOST_WIDTH = 15
PADDING = 2
_HEADINGS = (
    *("SUBS", "PENDING", "MSGS_TO", "MSGS_FROM", "BYTES_TO", "BYTES_FROM"),
    *("LANG", "VERSION", "UPTIME", "LAST_ACTIVITY"),
)
_WIDTHS = (6, 10, 10, 10, 10, 10, 7, 7, 7, 40)
_COUNT_UNITS = ("", "K", "M", "B", "T")
_BYTE_UNITS = ("", "K", "M", "G")


@dataclass(frozen=True, slots=True)
class Rates:
    """Of a server, a second."""

    in_msgs: float = 0.0
    in_bytes: float = 0.0
    out_msgs: float = 0.0
    out_bytes: float = 0.0


def _short(value: float, base: int, units: tuple[str, ...], *, raw: bool) -> str:
    unit = 0
    while not raw and value >= base and unit < len(units) - 1:
        value, unit = value / base, unit + 1
    return f"{value:.1f}{units[unit]}" if unit else f"{value:.0f}"


def count_text(value: float, *, raw: bool = False) -> str:
    """`12.3K` of thousands."""
    return _short(value, 1000, _COUNT_UNITS, raw=raw)


def bytes_text(value: float, *, raw: bool = False) -> str:
    """`12.3K` of 1024."""
    return _short(value, 1024, _BYTE_UNITS, raw=raw)


def top_text(
    varz: Varz,
    connz: Connz,
    rates: Rates,
    *,
    hosts: Mapping[str, str],
    delimiter: str,
    raw: bool,
    subscriptions: bool,
) -> str:
    """The whole text; `hosts` are names of addresses, empty when they are not wanted."""
    load = [f"{varz.cpu:.1f}%", bytes_text(varz.mem), str(varz.slow_consumers)]
    traffic = [
        [
            count_text(messages, raw=raw),
            bytes_text(size, raw=raw),
            f"{message_rate:.1f}",
            bytes_text(int(byte_rate), raw=raw),
        ]
        for messages, size, message_rate, byte_rate in (
            (varz.in_msgs, varz.in_bytes, rates.in_msgs, rates.in_bytes),
            (varz.out_msgs, varz.out_bytes, rates.out_msgs, rates.out_bytes),
        )
    ]
    rows = [_cells(one, hosts, raw=raw, subscriptions=subscriptions) for one in connz.connections]
    named = any(one.name for one in connz.connections)
    heads = ["HOST", "CID", "NAME", *_HEADINGS, *(["SUBSCRIPTIONS"] if subscriptions else [])]
    if not named:
        heads, rows = _without_name(heads), [_without_name(row) for row in rows]
    if delimiter:
        return _delimited(varz, connz, load, traffic, heads, rows, delimiter)
    name = varz.server_name if varz.server_name != varz.server_id else ""
    head = [
        f"NATS server version {varz.version} (uptime: {varz.uptime}) ",
        f"Server: {safe(name)}",
        f"  ID:   {varz.server_id}",
        f"  Load: CPU:  {load[0]}  Memory: {load[1]}  Slow Consumers: {load[2]}",
        *(
            f"  {way + ':':<4}  Msgs: {one[0]}  Bytes: {one[1]}  Msgs/Sec: {one[2]}  "
            f"Bytes/Sec: {one[3]}"
            for way, one in zip(("In", "Out"), traffic, strict=True)
        ),
        "",
        f"Connections Polled: {connz.num_connections}",
    ]
    grid = _grid(heads, rows, named=named, subscriptions=subscriptions)
    return "\n".join([*head, *grid]) + "\n"


def _without_name(cells: list[str]) -> list[str]:
    return [*cells[:2], *cells[3:]]


def _cells(one: ConnInfo, hosts: Mapping[str, str], *, raw: bool, subscriptions: bool) -> list[str]:
    last = format_time(parse_time(one.last_activity)).replace("T", " ").replace("Z", " +0000 UTC")
    cells = [
        hosts.get(one.ip, f"{one.ip}:{one.port}"),
        str(one.cid),
        safe(one.name),
        str(one.subscriptions),
        count_text(one.pending_bytes, raw=raw),
        count_text(one.out_msgs, raw=raw),
        count_text(one.in_msgs, raw=raw),
        bytes_text(one.out_bytes, raw=raw),
        bytes_text(one.in_bytes, raw=raw),
        safe(one.lang),
        safe(one.version),
        one.uptime,
        last,
    ]
    return [*cells, "  ".join(map(safe, one.subscriptions_list))] if subscriptions else cells


def _grid(
    heads: list[str], rows: list[list[str]], *, named: bool, subscriptions: bool
) -> list[str]:
    host = max([HOST_WIDTH, *(len(row[0]) + PADDING for row in rows if len(row[0]) > HOST_WIDTH)])
    widths = [host, 6]
    if named:
        widths.append(max([4, *(len(row[2]) + PADDING for row in rows if row[2])]))
    lines: list[str] = []
    for number, row in enumerate([heads, *rows]):
        fixed = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        rest = row[len(widths) :]
        tail = "  ".join(f"{cell:<{width}}" for cell, width in zip(rest, _WIDTHS, strict=False))
        start = " ".join([fixed[0] + " ", *fixed[1:]])
        more = ""
        if subscriptions:
            more = rest[-1] if number else f"{rest[-1]:>13}"
        lines.append(f"  {start} {tail}{more}")
    return lines


def _delimited(
    varz: Varz,
    connz: Connz,
    load: list[str],
    traffic: list[list[str]],
    heads: list[str],
    rows: list[list[str]],
    delimiter: str,
) -> str:
    labels = ("Msgs:", "Bytes:", "Msgs/Sec:", "Bytes/Sec:")
    ways = [
        [way, *(part for pair in zip(labels, one, strict=True) for part in pair)]
        for way, one in zip(("In:", "Out:"), traffic, strict=True)
    ]
    lines = [
        ["NATS server version", varz.version, f"(uptime: {varz.uptime})", ""],
        ["Server:"],
        ["Load:", "CPU:", load[0], "Memory:", load[1], "Slow Consumers:", load[2]],
        *ways,
        [],
        ["Connections Polled:", str(connz.num_connections)],
        heads,
        *rows,
    ]
    return "\n".join(delimiter.join(line) for line in lines) + "\n"
