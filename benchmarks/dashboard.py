"""How fast the dashboard is: `python -m benchmarks.dashboard`.

Update: a snapshot of 1,000 streams and 5,000 consumers, all changed, until it is on the screen.
First paint: from the start of the process on a pseudo terminal to the first frame. Rest: CPU of a
dashboard with its default pace on a cluster of three of our brokers with ten streams.
"""

import asyncio
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import nats
from nats.js.api import ConsumerConfig

from jsctl.dashboard.model.model import Model, Told
from jsctl.dashboard.model.snapshot import Snapshot
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, Cluster
from tests.dashboard.sample import sample
from tests.dashboard.shots import showing

STREAMS, CONSUMERS = 1000, 5000
ROUNDS = 10
REST_S = 20.0
SETTLE_S = 8.0
TICKS = os.sysconf("SC_CLK_TCK")
SIZE = {"COLUMNS": "120", "LINES": "40", "TERM": "xterm-256color", "COLORTERM": "truecolor"}


def crowd(turn: int) -> Snapshot:
    """Many of everything, other numbers every turn."""
    now = sample()
    streams = tuple(
        replace(now.streams[at % 14], name=f"STREAM-{at:05}", lag=at * turn, rate=float(at + turn))
        for at in range(STREAMS)
    )
    consumers = tuple(
        replace(now.consumers[at % 15], name=f"worker-{at:05}", lag=at * turn)
        for at in range(CONSUMERS)
    )
    return replace(now, streams=streams, consumers=consumers)


async def update_ms(*keys: str) -> float:
    """From a snapshot to the painted screen; the median of some rounds."""
    found = []
    async with showing(crowd(0)) as driven:
        await driven.press(*keys)
        for turn in range(1, ROUNDS + 1):
            snapshot = crowd(turn)
            painted = asyncio.Event()
            started = time.perf_counter()
            driven.app.show(snapshot)
            driven.app.screen.call_after_refresh(painted.set)
            await painted.wait()
            found.append((time.perf_counter() - started) * 1000)
            await driven.pilot.pause()
    return median(found)


def report() -> Told:
    """What a server with 1,000 streams and 5,000 consumers answers to JSZ."""
    group = {
        "name": "C1",
        "leader": "n1",
        "replicas": [{"name": one, "current": True, "active": 1} for one in ("n2", "n3")],
    }
    streams = []
    for at in range(STREAMS):
        consumers = [
            {
                "name": f"c{number}",
                "stream_name": f"S{at}",
                "config": {"ack_policy": "explicit"},
                "cluster": group,
                "num_pending": at,
            }
            for number in range(CONSUMERS // STREAMS)
        ]
        config = {"name": f"S{at}", "num_replicas": 3, "subjects": [f"s{at}.>"]}
        state = {"messages": at, "last_seq": at}
        streams.append(
            {
                "name": f"S{at}",
                "cluster": group,
                "config": config,
                "state": state,
                "consumer_detail": consumers,
            }
        )
    return Told({"name": "n1"}, {"account_details": [{"name": "A", "stream_detail": streams}]})


def read_ms() -> float:
    """From the decoded report to the snapshot."""
    model, told, found = Model(), report(), []
    for turn in range(ROUNDS):
        started = time.perf_counter()
        model.read_details([told], None, turn + 1, whole=True)
        model.snapshot(turn + 1)
        found.append((time.perf_counter() - started) * 1000)
    return median(found)


class Terminal:
    """The dashboard in a process of its own, on a pseudo terminal."""

    def __init__(self, urls: list[str]) -> None:
        self.started = time.perf_counter()
        self.leader, follower = pty.openpty()
        command = [sys.executable, "-m", "jsctl", "-s", ",".join(urls), "dashboard"]
        command += ["--system-user", SYSTEM_USER, "--system-password", SYSTEM_PASSWORD]
        self.process = subprocess.Popen(
            command,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**os.environ, **SIZE},
            start_new_session=True,
        )
        os.close(follower)
        self.seen = b""

    def read(self, seconds: float) -> None:
        """What it draws in that time."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self.leader], [], [], min(left, 0.05))[0]:
                self.seen += os.read(self.leader, 65536)

    def until(self, fact: Callable[[bytes], bool], deadline_s: float = 20.0) -> float:
        """Seconds from the start until it has drawn that."""
        while not fact(self.seen):
            if time.perf_counter() - self.started > deadline_s:
                raise TimeoutError("the dashboard did not draw it")
            self.read(0.005)
        return time.perf_counter() - self.started

    def cpu_s(self) -> float:
        """What the process has used."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss_mib(self) -> float:
        """Its memory."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2

    def close(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait(10)
        os.close(self.leader)


async def fill(urls: list[str]) -> None:
    """Ten streams with three consumers each."""
    client = await nats.connect(urls)
    js = client.jetstream()
    for at in range(10):
        await js.add_stream(name=f"S{at}", subjects=[f"s{at}.>"], num_replicas=3)
        for number in range(3):
            await js.add_consumer(f"S{at}", ConsumerConfig(durable_name=f"c{number}"))
    await client.close()


def main() -> None:
    """Prints the figures."""
    print(f"update, overview, {STREAMS} streams, {CONSUMERS} consumers: {_run(update_ms()):.0f} ms")
    print(f"update, all consumers on one tab: {_run(update_ms('3')):.0f} ms")
    print(f"a report of that size to a snapshot: {read_ms():.0f} ms")
    with Cluster(3) as cluster:
        asyncio.run(fill(cluster.urls))
        paints = []
        for _ in range(3):
            terminal = Terminal(cluster.urls)
            frame_s = terminal.until(lambda seen: b"Overview" in seen)
            data_s = terminal.until(lambda seen: b"HEALTHY" in seen)
            paints.append((frame_s, data_s))
            terminal.close()
        frame_s, data_s = (median(one[at] for one in paints) for at in (0, 1))
        print(f"first paint: {frame_s * 1000:.0f} ms, with data: {data_s * 1000:.0f} ms")
        terminal = Terminal(cluster.urls)
        terminal.read(SETTLE_S)
        used, drawn = terminal.cpu_s(), len(terminal.seen)
        terminal.read(REST_S)
        share = (terminal.cpu_s() - used) / REST_S
        rate = (len(terminal.seen) - drawn) / REST_S / 1024
        print(f"at rest: {share:.1%} of a core, {rate:.0f} KiB/s, {terminal.rss_mib():.0f} MiB")
        terminal.close()


def _run(made: object) -> float:
    return float(asyncio.run(made))  # type: ignore[arg-type] # a coroutine


if __name__ == "__main__":
    main()
