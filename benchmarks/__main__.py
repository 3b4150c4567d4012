"""Run comparisons on this machine and print ratios; `--quick` for smaller counts.

Without names all of them run: `mixed`, `runs`, `processes`, and what `growth` has parts of.

Both sides run in one go, one after the other, so that a ratio holds although the machine's speed
drifts. Each figure is the median of several runs. Ratios above 1 mean that jsctl is better. The
CPU is that of all servers together, user and system; it is steady where throughput is noisy.
"""

import argparse
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks import cases, figure, growth, mixed, process, servers
from benchmarks.figure import Figure
from benchmarks.servers import OURS, REAL, REAL_ALWAYS, Kind
from benchmarks.wire import Address

RUNS = 3
HEADER = f"{'':44}{'jsctl':>14}{'nats-server':>14}{'ratio':>10} {'CPU us a message':>17} {'aim':>7}"


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison. `aim` is the ratio that the project promises, 0 for none."""

    title: str
    ours: Figure
    theirs: Figure
    against: str
    aim: float = 0.0

    @property
    def ratio(self) -> float:
        """Above 1: better than the other."""
        if self.ours.higher:
            return self.ours.value / self.theirs.value
        return self.theirs.value / self.ours.value

    def text(self) -> str:
        """A row of the table."""
        aim = f"{self.aim:g}x" if self.aim else ""
        met = "" if not self.aim else ("ok" if self.ratio >= self.aim else "MISSED")
        cpu = f"{_cpu(self.ours):>8} /{_cpu(self.theirs):>7}"
        return (
            f"{self.title:44}{_number(self.ours):>14}{_number(self.theirs):>14}"
            f"{self.ratio:>9.2f}x {cpu}  {aim:>6} {met:7}{self.against}"
        )


def _number(figure: Figure) -> str:
    value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.2f}"
    return f"{value} {figure.unit}"


def _cpu(figure: Figure) -> str:
    return f"{figure.cpu_us:.2f}" if figure.cpu_us else "-"


def median(run: Callable[[], Figure], runs: int = RUNS) -> Figure:
    """The middle one of several runs."""
    return figure.median([run() for _ in range(runs)])


def core_figures(kind: Kind, scale: int) -> dict[str, Figure]:
    """Core messaging and an unreplicated stream on one server."""
    with servers.single(kind) as broker:
        at = servers.address(broker)
        p50, p99 = cases.sync_publish(at, 1, 2_000 // scale)
        return {
            "core": median(lambda: cases.core_publish(at, 2_000_000 // scale)),
            "pubsub": median(lambda: cases.publish_to_subscriber(at, 1_000_000 // scale)),
            "rr": median(lambda: cases.request_reply(at, 3_000 // scale)),
            "r1": median(lambda: cases.async_publish(at, 1, 200_000 // scale)),
            "r1p50": p50,
            "r1p99": p99,
            "pull": median(lambda: cases.pull_consume(at, 100_000 // scale)),
        }


def replicated_figures(kind: Kind, scale: int) -> dict[str, Figure]:
    """A stream with three replicas, published to at its leader's server."""
    with servers.three(kind) as (_, at):
        p50, p99 = cases.sync_publish(at, 3, 1_000 // scale, fresh=False)
        r3 = median(lambda: cases.async_publish(at, 3, 150_000 // scale, fresh=False))
        return {"r3": r3, "r3p50": p50, "r3p99": p99}


def mixed_core_figures(kind: Kind, scale: int) -> dict[str, Figure]:
    """Core messages of users on one server."""
    count = 400_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        one, eight, members = [b"bench.>"], mixed.OVERLAPPING, [b"bench.>"] * mixed.MEMBERS
        return {
            "nobody": median(lambda: mixed.to_subscribers(at, count, [])),
            "one": median(lambda: mixed.to_subscribers(at, count, one)),
            "headers": median(lambda: mixed.to_subscribers(at, count, one, headers=True)),
            "eight": median(lambda: mixed.to_subscribers(at, count // 4, eight)),
            "queue": median(lambda: mixed.to_subscribers(at, count, members, queue=b"q")),
            "requests": median(lambda: mixed.requests(at, 200, 40_000 // scale)),
        }


def mixed_stream_figures(kind: Kind, replicas: int, scale: int) -> dict[str, Figure]:
    """Streams and buckets as users fill and read them."""
    count = 100_000 // scale

    def measured(at: Address, prefix: str) -> dict[str, Figure]:
        ids = median(lambda: mixed.publish_with_ids(at, count))
        waiting = median(lambda: mixed.waiting_publishers(at, 50, count // 5))
        pull = median(lambda: cases.consume(at, count))
        put, get = mixed.put_and_get(at, replicas, 4_000 // scale)
        keys = ("ids", "waiting", "mixedpull", "put", "get")
        figures = (ids, waiting, pull, put, get)
        return {prefix + key: one for key, one in zip(keys, figures, strict=True)}

    if replicas == 1:
        with servers.single(kind) as broker:
            mixed.make_mixed_stream(servers.address(broker), 1)
            return measured(servers.address(broker), "r1")
    with servers.three(kind) as (cluster, at):
        mixed.make_mixed_stream(at, replicas)
        return measured(servers.leader_address(cluster), f"r{replicas}")


MIXED_ROWS: tuple[tuple[str, str, float], ...] = (
    ("mixed publish to nobody", "nobody", 0.0),
    ("mixed publish to a wildcard subscriber", "one", 0.0),
    ("mixed publish with headers, to one", "headers", 0.0),
    ("mixed publish to eight overlapping", "eight", 0.0),
    ("mixed publish to a queue group of four", "queue", 0.0),
    ("200 connections, one request each in flight", "requests", 0.0),
)
MIXED_STREAM_ROWS: tuple[tuple[str, str, float], ...] = (
    ("publish with ids, 1,000 subjects", "ids", 0.0),
    ("50 publishers that wait for each ack", "waiting", 0.0),
    ("pull, mixed, each acknowledged", "mixedpull", 0.0),
    ("key-value put p50", "put", 0.0),
    ("key-value get p50", "get", 0.0),
)
ROWS: tuple[tuple[str, str, float], ...] = (
    ("core publish 16 B", "core", 0.2),
    ("publish to subscriber 128 B", "pubsub", 0.35),
    ("request-reply p50", "rr", 0.0),
    ("R1 asynchronous publish 128 B, durable", "r1", 0.3),
    ("R1 synchronous publish p50", "r1p50", 0.0),
    ("R1 synchronous publish p99", "r1p99", 0.0),
    ("pull consume 128 B, each acknowledged", "pull", 0.2),
    ("R3 asynchronous publish 128 B, durable", "r3", 0.3),
    ("R3 synchronous publish p50", "r3p50", 0.0),
    ("R3 synchronous publish p99", "r3p99", 0.0),
)
ALWAYS_ROWS: tuple[tuple[str, str, float], ...] = (
    ("R1 asynchronous publish 128 B, both durable", "r1", 10.0),
    ("R1 synchronous publish p50, both durable", "r1p50", 0.0),
    ("R3 asynchronous publish 128 B, both durable", "r3", 0.0),
    ("R3 synchronous publish p50, both durable", "r3p50", 0.0),
)


def compare_mixed(scale: int) -> list[Line]:
    """The traffic of users, ours against nats-server as it comes and with sync always."""
    ours, theirs = mixed_core_figures(OURS, scale), mixed_core_figures(REAL, scale)
    lines = [Line(t, ours[key], theirs[key], "default sync", aim) for t, key, aim in MIXED_ROWS]
    for replicas in (1, 3):
        ours = mixed_stream_figures(OURS, replicas, scale)
        for kind, against, more in ((REAL, "default sync", 1), (REAL_ALWAYS, "sync always", 4)):
            theirs = mixed_stream_figures(kind, replicas, scale * more)
            lines += [
                Line(
                    f"R{replicas} {t}",
                    ours[f"r{replicas}{key}"],
                    theirs[f"r{replicas}{key}"],
                    against,
                    aim,
                )
                for t, key, aim in MIXED_STREAM_ROWS
            ]
    return lines


def compare(scale: int) -> list[Line]:
    """Runs of one subject and size, ours against nats-server as it comes and with sync always."""
    ours = core_figures(OURS, scale) | replicated_figures(OURS, scale)
    theirs = core_figures(REAL, scale) | replicated_figures(REAL, scale)
    lines = [Line(t, ours[key], theirs[key], "default sync", aim) for t, key, aim in ROWS]
    always = core_figures(REAL_ALWAYS, scale * 4) | replicated_figures(REAL_ALWAYS, scale * 2)
    lines += [Line(t, ours[key], always[key], "sync always", aim) for t, key, aim in ALWAYS_ROWS]
    return lines


def processes(scale: int) -> list[tuple[str, Figure, Figure, str]]:
    """Start, memory, recovery and outage with their bounds."""
    messages = 1_000_000 // scale
    return [
        (
            "ready on an empty store",
            median(lambda: process.ready_time(OURS), 5),
            median(lambda: process.ready_time(REAL), 5),
            "under 500 ms",
        ),
        ("resident memory, idle", process.idle_memory(OURS), process.idle_memory(REAL), "under 80"),
        (
            f"recovery of {messages:,} messages after kill -9",
            process.recovery_time(OURS, messages),
            process.recovery_time(REAL, messages),
            "under 5 s",
        ),
        (
            "no acknowledgements after kill -9 of a leader",
            median(lambda: process.leader_outage(OURS)),
            process.leader_outage(REAL),
            "at most 3 s",
        ),
    ]


def compare_growth(part: str, scale: int) -> list[Line]:
    """One part of what there is when there is much: each run has servers of its own."""
    found: list[dict[str, Figure]] = []
    for kind in (OURS, REAL):
        runs = [growth.PARTS[part](kind, scale) for _ in range(RUNS)]
        found.append({key: figure.median([run[key] for run in runs]) for key in runs[0]})
    ours, theirs = found
    return [
        Line(title, ours[key], theirs[key], "default sync", aim)
        for title, key, aim in growth.ROWS
        if key in ours
    ]


def tables(scale: int) -> dict[str, Callable[[], list[Line]]]:
    """What can be asked for by name, processes apart."""
    return {
        "mixed": lambda: compare_mixed(scale),
        "runs": lambda: compare(scale),
        **{part: partial(compare_growth, part, scale) for part in growth.PARTS},
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = [*tables(1), "processes", "growth"]
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    parser.add_argument("names", nargs="*", help=f"what to run: {', '.join(known)}")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(known)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    wanted = set(asked.names or known)
    if "growth" in wanted:
        wanted |= set(growth.PARTS)
    scale = 10 if asked.quick else 1
    print(f"jsctl and nats-server side by side on {platform.machine()}, medians of {RUNS}\n")
    for title, measure in tables(scale).items():
        if title not in wanted:
            continue
        print(title.ljust(44) + HEADER[44:])
        for line in measure():
            print(line.text())
        print()
    for title, ours, theirs, bound in processes(scale) if "processes" in wanted else ():
        print(f"{title:48}{_number(ours):>14}{_number(theirs):>14}  {bound}")


if __name__ == "__main__":
    main()
