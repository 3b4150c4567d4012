"""Two clusters of three servers that gateways make one super-cluster of, with the reports of both.

    python -m jsctl.demo_super

A stream is put into c2 by a client of c1, published to from both, and moved to c1 while publishing
goes on; then a whole cluster is killed, and comes back. As in `jsctl.demo`, every command that is
printed is run.
"""

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jsctl.demo import (
    INTERRUPTED,
    STREAM,
    SUBJECT_ROOT,
    DemoFailed,
    Message,
    Stage,
    airports,
    load,
    publish,
    say,
)
from jsctl.errors import JsctlError
from jsctl.testing import (
    HOST,
    SYSTEM_PASSWORD,
    SYSTEM_USER,
    Broker,
    BrokerFailed,
    ReservedPort,
)

CLUSTERS = ("c1", "c2")
SERVERS = 3
READY_S = 60.0
MOVE_S = 60.0
PAUSE_S = 0.1
LOAD_MAX = 9_000
"""Airports that each part of the tour publishes."""


def brokers(root: Path) -> dict[str, Broker]:
    """All servers by name, not started yet."""
    names = [f"{cluster}-n{number + 1}" for cluster in CLUSTERS for number in range(SERVERS)]
    routes = {name: ReservedPort() for name in names}
    doors = {name: ReservedPort() for name in names}

    def urls(ports: Mapping[str, ReservedPort], cluster: str) -> str:
        found = (f'"nats://{HOST}:{ports[one].number}"' for one in names if one.startswith(cluster))
        return ", ".join(found)

    remotes = "\n".join(f"{{ name: {one}, urls: [{urls(doors, one)}] }}" for one in CLUSTERS)
    found = {}
    for name in names:
        cluster = name.partition("-")[0]
        config = f"""
            cluster {{ name: {cluster}, listen: "{HOST}:{routes[name].number}"
                       routes: [{urls(routes, cluster)}] }}
            gateway {{ name: {cluster}, listen: "{HOST}:{doors[name].number}"
                       gateways: [ {remotes} ] }}
            accounts {{ $SYS {{ users: [ {{ user: {SYSTEM_USER}, password: {SYSTEM_PASSWORD} }} ]
            }} }}
        """
        found[name] = Broker("-js", name=name, config=config, directory=root / name)
    return found


def urls_of(servers: Mapping[str, Broker], cluster: str) -> list[str]:
    """Where clients of a cluster connect."""
    return [one.url for name, one in servers.items() if name.startswith(cluster)]


def wait(fact: Callable[[], bool], what: str, deadline_s: float) -> float:
    """Wait until something is so; how long that took. Raises DemoFailed."""
    started = time.monotonic()
    while not fact():
        if time.monotonic() - started > deadline_s:
            raise DemoFailed(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(PAUSE_S)
    return time.monotonic() - started


def is_whole(servers: Mapping[str, Broker]) -> bool:
    """Whether all servers are in one meta group, and current, and each has its way to the other
    cluster, by which it answers who asks there."""
    try:
        pages: dict[str, Any] = {name: one.monitor("/jsz") for name, one in servers.items()}
        healthy: list[Any] = [one.monitor("/healthz") for one in servers.values()]
        gates: list[Any] = [one.monitor("/gatewayz") for one in servers.values()]
    except OSError:
        return False
    leaders = {(page.get("meta_cluster") or {}).get("leader", "") for page in pages.values()}
    if len(leaders) != 1 or not leaders <= set(servers):
        return False
    if not all(page.get("outbound_gateways") for page in gates):
        return False
    others = pages[leaders.pop()]["meta_cluster"].get("replicas") or []
    current = [one for one in others if one["current"] and not one.get("offline")]
    return len(current) == len(servers) - 1 and all(page["status"] == "ok" for page in healthy)


async def move(stage: Stage, urls: Sequence[str], messages: Sequence[Message]) -> int:
    """Have the stream moved to c1 while messages are published; how many were acknowledged."""
    async with asyncio.TaskGroup() as tasks:
        publishing = tasks.create_task(publish(urls, messages))
        words = ("stream", "edit", STREAM, "--cluster", "c1", "--force")
        tasks.create_task(asyncio.to_thread(stage.run, *words))
    return publishing.result()


def show(stage: Stage, servers: Mapping[str, Broker]) -> None:
    """The tour. Raises DemoFailed."""
    messages, all_urls = airports(), {one: urls_of(servers, one) for one in CLUSTERS}
    say("\n--- Two clusters, one super-cluster")
    who = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    for cluster, urls in all_urls.items():
        stage.run("context", "add", cluster, "--server", ",".join(urls))
    stage.run("context", "add", "system", "--server", ",".join(all_urls["c1"]), *who)
    stage.run("--context", "system", "server", "list")
    stage.run("--context", "system", "server", "report", "gateways")
    say("\n--- A stream in c2, made by a client of c1, published to from both")
    words = ("--subjects", f"{SUBJECT_ROOT}.>", "--replicas", "3", "--cluster", "c2", "--defaults")
    stage.run("--context", "c1", "stream", "add", STREAM, *words)
    load(all_urls["c1"], messages[:LOAD_MAX])
    load(all_urls["c2"], messages[LOAD_MAX : 2 * LOAD_MAX])
    stage.run("--context", "c1", "stream", "report")
    say("\n--- It moves to c1 while publishing goes on")
    stage.run("context", "select", "c1")
    last = messages[2 * LOAD_MAX :]
    acked = asyncio.run(move(stage, all_urls["c2"], last))

    def moved() -> bool:
        now = stage.info()
        return now.is_whole and now.leader.startswith("c1")

    took = wait(moved, "the stream is in c1", MOVE_S)
    say(f"\n{acked:,} of {len(last):,} messages acknowledged meanwhile; moved {took:.1f} s later.")
    if acked != len(last):
        raise DemoFailed("some messages were not acknowledged")
    stage.run("stream", "report")
    stage.run("--context", "system", "server", "report", "jetstream")
    killed(stage, servers, all_urls["c1"], messages)


def killed(
    stage: Stage, servers: Mapping[str, Broker], urls: Sequence[str], messages: Sequence[Message]
) -> None:
    """A whole cluster is killed; the other one serves what it has, and both are one again."""
    say("\n--- All of c2 is killed (kill -9); the stream in c1 is served")
    gone = {name: one for name, one in servers.items() if name.startswith("c2")}
    for broker in gone.values():
        broker.kill()
    load(urls, [(f"{subject}.again", body) for subject, body in messages[:1000]])
    say("\n--- It comes back")
    for broker in gone.values():
        broker.launch()
    took = wait(lambda: is_whole(servers), "all servers are current", READY_S)
    say(f"\nAll {len(servers)} servers are current after {took:.1f} s.")
    stage.run("--context", "c2", "stream", "report")
    stage.run("--context", "system", "server", "list")


def main() -> int:
    """Run the demonstration; the exit status is returned."""
    root = Path(tempfile.mkdtemp(prefix="jsctl-demo-"))
    servers = brokers(root / "servers")
    try:
        say(f"Starting {len(servers)} servers in {root} ...")
        for broker in servers.values():
            broker.launch()
        took = wait(lambda: is_whole(servers), "all servers are one", READY_S)
        say(f"{', '.join(servers)} are one after {took:.1f} s.")
        show(Stage(root / "home"), servers)
    except (DemoFailed, BrokerFailed, JsctlError, OSError) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED
    finally:
        for broker in servers.values():
            broker.close()
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
