"""A five-server cluster on this machine with real data in it, and the reports that show it.

    python -m jsctl.demo [--keep]

Every command it prints it runs, as a process of its own; what stands below is that command's
output. Nothing outside of one temporary directory is touched: the contexts are stored there too.
"""

import argparse
import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.client.connection import connect
from jsctl.client.failures import foreign_errors
from jsctl.errors import JsctlError
from jsctl.settings import Context, Settings
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, BrokerFailed, Cluster

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

SERVERS = 5
REPLICAS = 3
STREAM = "AIRPORTS"
SUBJECT_ROOT = "airports"
IN_FLIGHT_MAX = 1000
ACK_S = 3.0
TRIES_MAX = 5
COMMAND_S = 30.0
HEAL_S = 20.0
LEADERLESS = "(10008)"
"""In an error: nobody could be asked just now."""
PAUSE_S = 0.1
INTERRUPTED = 130

Message = tuple[str, bytes]


class DemoFailed(Exception):
    """The demonstration cannot go on; the text says why."""


class Stage:
    """Where commands run: contexts of its own, and a log that people read."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("NATS_", "JSCTL_"))
        } | {"XDG_CONFIG_HOME": str(home)}

    def run(self, *words: str) -> None:
        """Print a command, run it, print its output. Raises DemoFailed."""
        say(f"\n$ jsctl {shlex.join(words)}")
        done = self._run(words)
        sys.stdout.write(done.stderr + done.stdout)
        sys.stdout.flush()
        if done.returncode:
            raise DemoFailed(f"jsctl {shlex.join(words)} ended with status {done.returncode}")

    def info(self) -> "StreamInfo":
        """What the stream's leader says, when there is one: on a machine that has much else to do
        there may be none for a moment. Raises DemoFailed."""
        started = time.monotonic()
        while True:
            done = self._run(("stream", "info", STREAM, "--json"))
            if not done.returncode:
                return StreamInfo(done.stdout)
            if LEADERLESS not in done.stderr or time.monotonic() - started > HEAL_S:
                raise DemoFailed(f"no information about {STREAM}: {done.stderr.strip()}")
            time.sleep(PAUSE_S)

    def _run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [sys.executable, "-m", "jsctl", *words],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"jsctl {shlex.join(words)} took over {COMMAND_S:.0f} s") from None


class StreamInfo:
    """Who keeps the stream."""

    def __init__(self, text: str) -> None:
        cluster = json.loads(text).get("cluster") or {}
        self.leader: str = cluster.get("leader", "")
        replicas = cluster.get("replicas") or []
        self.followers: list[str] = [one["name"] for one in replicas]
        self.current = all(one["current"] and not one.get("offline") for one in replicas)

    @property
    def is_whole(self) -> bool:
        """Whether there is a leader and all its followers are current."""
        return bool(self.leader) and len(self.followers) == REPLICAS - 1 and self.current


def say(text: str) -> None:
    """One line at once, also into a pipe."""
    print(text, flush=True)


def token(text: str) -> str:
    """A word that may stand in a subject; `_` for nothing."""
    return "".join(char if char.isalnum() or char == "-" else "_" for char in text) or "_"


def airports() -> list[Message]:
    """All airports as messages: `airports.<country>.<state>.<icao>`. Raises DemoFailed."""
    try:
        import airportsdata
    except ImportError:
        text = "the package airportsdata is missing: run `make demo`, or pip install 'jsctl[dev]'"
        raise DemoFailed(text) from None
    return [
        (
            f"{SUBJECT_ROOT}.{token(row['country'])}.{token(row['subd'])}.{token(row['icao'])}",
            json.dumps(row).encode(),
        )
        for row in airportsdata.load("ICAO").values()
    ]


async def publish(urls: Sequence[str], messages: Sequence[Message]) -> int:
    """Store messages, many in flight at once; how many were acknowledged.

    What is in flight when a stream changes its leader may go unanswered. It is sent again, under
    the same id, so that it is stored once.
    """
    settings = Settings(connection=Context(url=",".join(urls)))
    waiting, stored = list(messages), set[int]()
    async with connect(settings) as client:
        for _ in range(TRIES_MAX):
            missing: list[Message] = []
            for start in range(0, len(waiting), IN_FLIGHT_MAX):
                part = waiting[start : start + IN_FLIGHT_MAX]
                found = await asyncio.gather(*(store(client, *message) for message in part))
                stored.update(filter(None, found))
                missing += [one for one, seq in zip(part, found, strict=True) if not seq]
            waiting = missing
            if not waiting:
                break
    return len(stored)


async def store(client: "NatsClient", subject: str, body: bytes) -> int:
    """The sequence of one stored message; 0 when no acknowledgement came."""
    try:
        reply = await client.request(subject, body, timeout=ACK_S, headers={"Nats-Msg-Id": subject})
    except foreign_errors():
        return 0
    return int(json.loads(reply.data).get("seq", 0))


def load(urls: Sequence[str], messages: Sequence[Message]) -> None:
    """Store the data set and say how fast that was. Raises DemoFailed."""
    say(f"\nPublishing {len(messages):,} airports to {SUBJECT_ROOT}.<country>.<state>.<icao> ...")
    started = time.monotonic()
    stored = asyncio.run(publish(urls, messages))
    took = time.monotonic() - started
    if stored != len(messages):
        raise DemoFailed(f"only {stored:,} of {len(messages):,} messages were acknowledged")
    rate = f"{stored / took:,.0f} a second"
    say(f"{stored:,} acknowledged in {took:.1f} s ({rate}), each on two disks or more.")


def wait_whole(stage: Stage, *, without: str = "") -> None:
    """Wait until all replicas are current, none of them on a given server."""
    started = time.monotonic()
    while True:
        now = stage.info()
        if now.is_whole and without not in (now.leader, *now.followers):
            break
        if time.monotonic() - started > HEAL_S:
            raise DemoFailed(f"{STREAM} is not whole after {HEAL_S:.0f} s")
        time.sleep(PAUSE_S)
    say(f"\nAll {REPLICAS} replicas are current after {time.monotonic() - started:.1f} s.")


def show(stage: Stage, urls: Sequence[str]) -> None:
    """The tour. Raises DemoFailed."""
    messages = airports()
    servers = ("--server", ",".join(urls))
    say("\n--- A replicated stream with real data")
    stage.run("context", "add", "demo", *servers, "--select")
    who = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    stage.run("context", "add", "demo-system", *servers, *who)
    words = ("--subjects", f"{SUBJECT_ROOT}.>", "--replicas", str(REPLICAS), "--defaults")
    stage.run("stream", "add", STREAM, *words)
    load(urls, messages)
    stage.run("stream", "get", STREAM, "--last-for", f"{SUBJECT_ROOT}.US.New_York.KJFK")
    filters = ("--filter", f"{SUBJECT_ROOT}.IS.>", "--pull", "--replicas", str(REPLICAS))
    stage.run("consumer", "add", STREAM, "ICELAND", *filters, "--defaults")
    stage.run("consumer", "next", STREAM, "ICELAND", "--count", "2", "--raw")
    say("\n--- What an operator sees")
    stage.run("stream", "report")
    stage.run("consumer", "report", STREAM)
    stage.run("--context", "demo-system", "server", "report", "jetstream")
    say("\n--- Another leader")
    stage.run("stream", "cluster", "step-down", STREAM)
    say("\n--- A server leaves the stream, another one takes over its copy")
    gone = stage.info().followers[0]
    stage.run("stream", "cluster", "peer-remove", STREAM, gone, "--force")
    wait_whole(stage, without=gone)
    stage.run("stream", "report")
    stage.run("stream", "info", STREAM)


def farewell(cluster: Cluster, root: Path) -> None:
    """How to use and to stop what keeps running."""
    pids = " ".join(str(broker.pid) for broker in cluster)
    say("\n--- The cluster keeps running")
    for broker in cluster:
        say(f"{broker.name}  {broker.url}  monitoring {broker.monitor_url}  log {broker.log_file}")
    say("\nUse it (the contexts demo and demo-system are stored apart from yours):\n")
    say(f"  export XDG_CONFIG_HOME={shlex.quote(str(root / 'home'))}")
    program = Path(sys.executable).parent / "jsctl"
    for words in (
        "stream report",
        "stream subjects AIRPORTS 'airports.IS.>'",
        "--context demo-system server list",
    ):
        say(f"  {program} {words}")
    say("\nStop it:\n")
    say(f"  kill {pids}; rm -r {shlex.quote(str(root))}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; the exit status is returned."""
    parser = argparse.ArgumentParser(prog="python -m jsctl.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    keep: bool = parser.parse_args(arguments).keep
    root = Path(tempfile.mkdtemp(prefix="jsctl-demo-"))
    cluster = Cluster(SERVERS, name="DEMO", directory=root / "servers")
    kept = False
    try:
        say(f"Starting {SERVERS} servers in {root} ...")
        cluster.start()
        say(f"{', '.join(cluster.names)} are ready; {cluster.meta_leader()} leads the meta group.")
        show(Stage(root / "home"), cluster.urls)
        if keep:
            farewell(cluster, root)
        kept = keep
    except (DemoFailed, BrokerFailed, JsctlError, OSError) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED
    finally:
        if not kept:
            cluster.close()
            shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
