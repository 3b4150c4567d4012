"""Run all comparisons on this machine and print ratios; `--quick` for smaller counts.

Both sides run in one go, one after the other, so that a ratio holds although the machine's speed
drifts. Each figure is the median of several runs. Ratios above 1 mean that jsctl is better.
"""

import argparse
import platform
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import cases, process, servers
from benchmarks.cases import Figure
from benchmarks.servers import OURS, REAL, REAL_ALWAYS, Kind

RUNS = 3


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
        return (
            f"{self.title:44}{_number(self.ours):>14}{_number(self.theirs):>14}"
            f"{self.ratio:>9.2f}x {aim:>6} {met:7}{self.against}"
        )


def _number(figure: Figure) -> str:
    value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.2f}"
    return f"{value} {figure.unit}"


def median(run: Callable[[], Figure], runs: int = RUNS) -> Figure:
    """The middle one of several runs."""
    found = [run() for _ in range(runs)]
    return Figure(statistics.median(f.value for f in found), found[0].unit, found[0].higher)


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


def compare(scale: int) -> list[Line]:
    """All rates, ours against nats-server as it comes and with sync always."""
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


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    scale = 10 if parser.parse_args().quick else 1
    print(f"jsctl and nats-server side by side on {platform.machine()}, medians of {RUNS}\n")
    print(f"{'':44}{'jsctl':>14}{'nats-server':>14}{'ratio':>10} {'aim':>6}")
    for line in compare(scale):
        print(line.text())
    print()
    for title, ours, theirs, bound in processes(scale):
        print(f"{title:48}{_number(ours):>14}{_number(theirs):>14}  {bound}")


if __name__ == "__main__":
    main()
