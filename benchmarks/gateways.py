"""Messages between clusters and over leaf nodes, beside nats-server.

    python -m benchmarks.gateways [--quick]

Ratios of messages a second, and of CPU a message of all servers together, above 1 where jsctl is
better. Medians of three.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

from benchmarks import cases, mixed, servers
from benchmarks.__main__ import median
from benchmarks.figure import Figure
from benchmarks.servers import OURS, REAL, Kind
from benchmarks.wire import Address
from jsctl.testing import Broker
from tests.support import gateways, leafs
from tests.support.super_clusters import one_jetstream, super_cluster

COUNT = 400_000
ONE = [b"bench.>"]
STORED = 100_000
SIZES = {"a": 1, "b": 3}


def pair(one: Broker, other: Broker) -> tuple[Address, Address]:
    """Both, with the CPU of both."""
    pids = (one.pid, other.pid)
    found = [replace(servers.address(broker), pids=pids) for broker in (one, other)]
    return found[0], found[1]


def across(words: str, at: Address, other: Address, count: int) -> dict[str, Figure]:
    """From one server to another."""
    runs: dict[str, Callable[[], Figure]] = {
        words: lambda: mixed.to_subscribers(at, count, ONE, across=other),
        f"{words}, with headers": lambda: mixed.to_subscribers(
            at, count, ONE, headers=True, across=other
        ),
    }
    return {name: median(run) for name, run in runs.items()}


def stored(kind: str, count: int) -> dict[str, Figure]:
    """Into a stream with three replicas in the other cluster."""
    with super_cluster(dict.fromkeys(SIZES, kind), SIZES, jetstream=True) as found:
        one_jetstream(found)
        pids = tuple(broker.pid for broker in found.values())
        at = replace(servers.address(found["a1"]), pids=pids)
        cases.make_stream(at, 3, placement={"cluster": "b"})
        gateways.told(found["a1"], "bench.js")
        run = median(lambda: cases.async_publish(at, 3, count, fresh=False))
        return {"to three replicas in the other cluster": run}


def figures(kind: Kind, count: int, stores: int) -> dict[str, Figure]:
    """All that is measured of one kind of server."""
    made: dict[str, Figure] = {}
    with gateways.pair((kind.name, kind.name)) as (one, other):
        made |= across("to another cluster", *pair(one, other), count)
    with leafs.pair((kind.name, kind.name)) as (hub, leaf):
        at, other_at = pair(hub, leaf)
        made |= across("hub to leaf node", at, other_at, count)
        made |= across("leaf node to hub", other_at, at, count)
    return made | stored(kind.name, stores)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    part = 10 if parser.parse_args().quick else 1
    real, ours = [figures(kind, COUNT // part, STORED // part) for kind in (REAL, OURS)]
    print(f"{'':40}{'nats-server':>14}{'jsctl':>14}{'ratio':>8}{'CPU us, each':>18}{'ratio':>8}")
    for name, theirs in real.items():
        mine = ours[name]
        costs = f"{theirs.cpu_us:.2f} / {mine.cpu_us:.2f}"
        cheaper = theirs.cpu_us / mine.cpu_us if mine.cpu_us else 0.0
        print(
            f"{name:40}{theirs.value:14,.0f}{mine.value:14,.0f}{mine.value / theirs.value:8.2f}"
            f"{costs:>18}{cheaper:8.2f}"
        )


if __name__ == "__main__":
    main()
