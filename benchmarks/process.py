"""What a server costs as a process: start, recovery, memory, and the gap when a leader dies."""

import time
from pathlib import Path

from benchmarks import cases, servers
from benchmarks.figure import Figure
from benchmarks.servers import Kind
from benchmarks.wire import Address, Wire

IDLE_S = 2.0
OUTAGE_S = 30.0


def ready_time(kind: Kind) -> Figure:
    """From the start of the process to its first answer, on an empty store."""
    broker = kind.server("-js", name="bench", config=kind.config)
    try:
        start = time.perf_counter()
        broker.launch()
        while True:
            try:
                Wire(servers.address(broker)).close()
                break
            except OSError:
                time.sleep(0.002)
        return Figure((time.perf_counter() - start) * 1e3, "ms", higher=False)
    finally:
        broker.close()


def idle_memory(kind: Kind) -> Figure:
    """Resident memory of a server that has nothing to do."""
    with servers.single(kind) as broker:
        time.sleep(IDLE_S)
        pages = int(Path(f"/proc/{broker.pid}/statm").read_text().split()[1])
        return Figure(pages * 4096 / 2**20, "MiB", higher=False)


def recovery_time(kind: Kind, messages: int = 1_000_000) -> Figure:
    """Kill -9 with a stream of 128 B messages; until the stream answers again."""
    with servers.single(kind) as broker:
        at = servers.address(broker)
        cases.async_publish(at, 1, messages, 8192)
        broker.kill()
        start = time.perf_counter()
        broker.launch()
        while not has_messages(at, messages):
            time.sleep(0.01)
        return Figure(time.perf_counter() - start, "s", higher=False)


def has_messages(at: Address, wanted: int) -> bool:
    """Whether the stream is there with all its messages."""
    try:
        wire = Wire(at, timeout_s=5.0)
        try:
            state = wire.api("STREAM.INFO.BENCH")["state"]
        finally:
            wire.close()
    except (OSError, RuntimeError):
        return False
    return isinstance(state, dict) and int(state["messages"]) >= wanted


def leader_outage(kind: Kind) -> Figure:
    """Kill -9 of a stream leader's server: time until a publish is acknowledged again."""
    with servers.three(kind) as (cluster, at):
        leader = servers.leader_name(at)
        other = next(broker for broker in cluster if broker.name != leader)
        there = servers.address(other)
        acknowledged(there, OUTAGE_S)
        cluster.kill(leader)
        start = time.perf_counter()
        acknowledged(there, OUTAGE_S)
        return Figure(time.perf_counter() - start, "s", higher=False)


def acknowledged(at: Address, deadline_s: float) -> None:
    """Publish until one publish is acknowledged."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        try:
            wire = Wire(at, timeout_s=0.25)
            try:
                answer = wire.request("bench.js", b"x")
                if b'"seq":' in answer and b'"error"' not in answer:
                    return
            finally:
                wire.close()
        except OSError:
            pass
        time.sleep(0.01)
    raise RuntimeError(f"no acknowledgement within {deadline_s} s")
