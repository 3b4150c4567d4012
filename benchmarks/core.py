"""Core messages of users beside nats-server: with the lane's loop compiled, and in Python.

    python -m benchmarks.core [--quick]

Ratios of messages a second, and of CPU a message, above 1 where jsctl is better; those of the loop
in Python in brackets. The three servers of a cluster count together. Medians of three.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

from benchmarks import cases, mixed, servers
from benchmarks.__main__ import median
from benchmarks.figure import Figure
from benchmarks.servers import OURS, OURS_PURE, REAL, Kind
from benchmarks.wire import Address
from jsctl.testing import Cluster

COUNT = 400_000
ONE = [b"bench.>"]


def single(at: Address, count: int) -> dict[str, Callable[[], Figure]]:
    """On one server."""
    members = ONE * mixed.MEMBERS
    return {
        "mixed publish to nobody": lambda: mixed.to_subscribers(at, count, []),
        "to one": lambda: mixed.to_subscribers(at, count, ONE),
        "to one, with headers": lambda: mixed.to_subscribers(at, count, ONE, headers=True),
        "to eight": lambda: mixed.to_subscribers(at, count // 4, mixed.OVERLAPPING),
        "to a queue group of four": lambda: mixed.to_subscribers(at, count, members, queue=b"q"),
        "200 connections, one request each": lambda: mixed.requests(at, 200, count // 10),
        "run of 16 B to nobody": lambda: cases.core_publish(at, count * 4),
        "run of 128 B to one": lambda: cases.publish_to_subscriber(at, count * 2),
    }


def across(at: Address, other: Address, count: int) -> dict[str, Callable[[], Figure]]:
    """From one server to another."""
    return {
        "across a route, to one": lambda: mixed.to_subscribers(at, count, ONE, across=other),
        "across a route, with headers": lambda: mixed.to_subscribers(
            at, count, ONE, headers=True, across=other
        ),
    }


def figures(kind: Kind, count: int) -> dict[str, Figure]:
    """All that is measured of one kind of server."""
    with servers.single(kind) as broker:
        found = {name: median(run) for name, run in single(servers.address(broker), count).items()}
    with Cluster(3, server=kind.server) as cluster:
        pids = tuple(broker.pid for broker in cluster)
        one, other, _ = [replace(servers.address(broker), pids=pids) for broker in cluster]
        return found | {name: median(run) for name, run in across(one, other, count).items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    count = COUNT // 10 if parser.parse_args().quick else COUNT
    real, ours, pure = [figures(kind, count) for kind in (REAL, OURS, OURS_PURE)]
    print(f"{'':36}{'nats-server':>14}{'jsctl':>14}{'ratio':>18}{'CPU us, each':>24}{'ratio':>14}")
    for name, theirs in real.items():
        mine, slow = ours[name], pure[name]
        speeds = f"{mine.value / theirs.value:.2f} ({slow.value / theirs.value:.2f})"
        costs = f"{theirs.cpu_us:.2f} / {mine.cpu_us:.2f} ({slow.cpu_us:.2f})"
        ratios = f"{_ratio(theirs, mine):.2f} ({_ratio(theirs, slow):.2f})"
        print(
            f"{name:36}{theirs.value:14,.0f}{mine.value:14,.0f}{speeds:>18}{costs:>24}{ratios:>14}"
        )


def _ratio(theirs: Figure, ours: Figure) -> float:
    return theirs.cpu_us / ours.cpu_us if ours.cpu_us else 0.0


if __name__ == "__main__":
    main()
