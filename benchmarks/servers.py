"""The servers that are compared, started on loopback one kind at a time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.cases import make_stream
from benchmarks.wire import Address, Wire
from jsctl.broker.accel.choice import PURE_VARIABLE
from jsctl.testing import HOST, Broker, Cluster, RealServer

ALWAYS = "jetstream { sync_interval: always }\n"
PATIENCE_S = 30.0


# A machine that forbids bytecode files would have each server compile all of itself at its start,
# and what is loaded with the first use of something later on: that is not what users run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to run a server. `config` is added to its configuration."""

    name: str
    server: type[Broker]
    config: str = ""


class PureBroker(Broker):
    """Ours, with the lane's loop in Python."""

    def __init__(self, *words: str, **settings: Any) -> None:
        super().__init__(*words, environment={PURE_VARIABLE: "1"}, **settings)


OURS = Kind("jsctl", Broker)
OURS_PURE = Kind("jsctl, pure", PureBroker)
REAL = Kind("nats-server", RealServer)
REAL_ALWAYS = Kind("nats-server, sync always", RealServer, ALWAYS)


@contextmanager
def single(kind: Kind) -> Iterator[Broker]:
    """One server with JetStream."""
    with kind.server("-js", name="bench", config=kind.config) as broker:
        yield broker


@contextmanager
def three(kind: Kind) -> Iterator[tuple[Cluster, Address]]:
    """A cluster of three, and the address of the server that leads the stream."""
    with Cluster(3, server=kind.server, config=kind.config) as cluster:
        yield cluster, stream_leader(cluster)


def address(broker: Broker) -> Address:
    """Where to connect."""
    return Address(HOST, broker.port, pids=(broker.pid,))


def stream_leader(cluster: Cluster) -> Address:
    """Make the stream with three replicas; where its leader listens."""
    first = address(next(iter(cluster)))
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            make_stream(first, 3)
            break
        except (RuntimeError, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
    return leader_address(cluster)


def leader_address(cluster: Cluster) -> Address:
    """Where the stream's leader listens; the CPU of all servers counts."""
    leader = cluster[leader_name(address(next(iter(cluster))))]
    return replace(address(leader), pids=tuple(broker.pid for broker in cluster))


def leader_name(at: Address) -> str:
    """The server that leads the stream; empty while nobody does."""
    wire = Wire(at, timeout_s=3.0)
    try:
        cluster = wire.api("STREAM.INFO.BENCH")["cluster"]
        return str(cluster.get("leader", "")) if isinstance(cluster, dict) else ""
    finally:
        wire.close()
