"""Several brokers that form a cluster."""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from jsctl.testing.broker import (
    HOST,
    PAUSE_S,
    Broker,
    BrokerFailed,
    ReservedPort,
    temporary_directory,
)

LEADER_S = 30.0
SYSTEM_USER = "sys"
SYSTEM_PASSWORD = "sys"
SYSTEM_ACCOUNT = (
    f"accounts {{ $SYS {{ users: [ {{ user: {SYSTEM_USER}, password: {SYSTEM_PASSWORD} }} ] }} }}"
)
ACCOUNTS = re.compile(r"\baccounts\s*[:=]?\s*{")


class Cluster:
    """Brokers with JetStream, routes to each other and a system account (user sys, sys)."""

    def __init__(
        self,
        size: int = 3,
        *,
        name: str = "C1",
        config: str = "",
        directory: Path | None = None,
        server: type[Broker] = Broker,
    ) -> None:
        """`config` goes into every broker's configuration file. Names are n1, n2, ...

        One that has `accounts` takes the place of the system account's. Raises ValueError for less
        than two brokers, which would wait for others for ever.
        """
        if size < 2:
            raise ValueError(
                f"a cluster has two brokers at least, not {size}: one alone is a Broker"
            )
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            self._temporary = temporary_directory()
            directory = Path(self._temporary.name)
        self.name = name
        self._ports = {f"n{number}": ReservedPort() for number in range(1, size + 1)}
        routes = ", ".join(f'"nats://{HOST}:{port.number}"' for port in self._ports.values())
        self.brokers: dict[str, Broker] = {}
        for node, port in self._ports.items():
            listen = f"{HOST}:{port.number}"
            accounts = "" if ACCOUNTS.search(config) else SYSTEM_ACCOUNT
            text = (
                f'cluster {{ name: "{name}", listen: "{listen}", routes: [{routes}] }}\n'
                f"{accounts}\n{config}\n"
            )
            self.brokers[node] = server("-js", name=node, config=text, directory=directory / node)

    @property
    def names(self) -> list[str]:
        """n1, n2, ..."""
        return list(self.brokers)

    @property
    def urls(self) -> list[str]:
        """Where clients connect, one URL a broker."""
        return [broker.url for broker in self.brokers.values()]

    def __getitem__(self, name: str) -> Broker:
        """The broker of a name."""
        return self.brokers[name]

    def __iter__(self) -> Iterator[Broker]:
        """The brokers in order."""
        return iter(self.brokers.values())

    def start(self, leader_s: float = LEADER_S) -> "Cluster":
        """Start all and wait until they work as one. Raises BrokerFailed."""
        for broker in self:
            broker.launch()
        for broker in self:
            broker.wait_ready()
        self.wait_routes(leader_s)
        self.wait_whole(leader_s)
        return self

    def kill(self, name: str) -> None:
        """Kill one broker."""
        self[name].kill()

    def restart(self, name: str, *, kill: bool = False) -> Broker:
        """Restart one broker on its ports and store."""
        return self[name].restart(kill=kill)

    def meta_leader(self) -> str:
        """The leader that every running broker names; empty while they disagree."""
        found: set[str] = set()
        for broker in self:
            if not broker.running:
                continue
            try:
                page = broker.monitor("/jsz")
            except OSError:
                return ""
            meta = page.get("meta_cluster") if isinstance(page, dict) else None
            leader = meta.get("leader") if isinstance(meta, dict) else None
            found.add(leader if isinstance(leader, str) else "")
        return found.pop() if len(found) == 1 else ""

    def wait_meta_leader(self, deadline_s: float = LEADER_S) -> str:
        """Wait until all running brokers name a running leader. Raises BrokerFailed."""
        found = ""

        def led() -> bool:
            nonlocal found
            found = self.meta_leader()
            return found != "" and self.brokers[found].running

        self._wait(led, deadline_s, "no meta leader")
        return found

    def wait_whole(self, deadline_s: float = LEADER_S) -> None:
        """Wait until all running brokers are healthy and current, and the meta leader knows it.

        A fresh cluster loses or refuses requests until this is so. Raises BrokerFailed.
        """
        self._wait(self._is_whole, deadline_s, "not all brokers are healthy")

    def _is_whole(self) -> bool:
        leader = self.meta_leader()
        running = {broker.name for broker in self if broker.running}
        if leader not in running:
            return False
        try:
            pages: list[Any] = [self[name].monitor("/healthz") for name in running]
            meta: Any = self[leader].monitor("/jsz")
        except OSError:
            return False
        others = meta["meta_cluster"].get("replicas") or []
        current = {one["name"] for one in others if one["current"] and not one.get("offline")}
        return all(page["status"] == "ok" for page in pages) and running - {leader} <= current

    def wait_routes(self, deadline_s: float = LEADER_S) -> None:
        """Wait until all running brokers have all their routes to each other.

        A meta leader is elected over a part of them; answers get lost until the others are there:
        API requests go through a route of the system account. Raises BrokerFailed.
        """
        self._wait(self._has_routes, deadline_s, "not all routes")

    def _has_routes(self) -> bool:
        running = [broker for broker in self if broker.running]
        for broker in running:
            try:
                general: Any = broker.monitor("/varz")
                page: Any = broker.monitor("/routez")
            except OSError:
                return False
            pool = max(1, general["cluster"].get("pool_size", 1))
            system = general.get("system_account")
            found = Counter((one.get("remote_name"), one.get("account")) for one in page["routes"])
            for other in running:
                routes = found[other.name, None], found[other.name, system]
                if other is not broker and routes != (pool, 1):
                    return False
        return True

    def _wait(self, fact: Callable[[], bool], deadline_s: float, what: str) -> None:
        end = time.monotonic() + deadline_s
        while not fact():
            if time.monotonic() > end:
                logs = "\n".join(f"--- {b.name}\n{b.logs[-2000:]}" for b in self)
                raise BrokerFailed(f"{what} after {deadline_s} s\n{logs}")
            time.sleep(PAUSE_S * 5)

    def stop(self) -> None:
        """Stop all, the last one first."""
        for broker in reversed(self.brokers.values()):
            broker.stop()

    def close(self) -> None:
        """Kill what still runs and give everything back."""
        with ExitStack() as rest:  # All of it, also if somebody interrupts a part.
            if self._temporary is not None:
                rest.callback(self._temporary.cleanup)
                self._temporary = None
            for port in self._ports.values():
                rest.callback(port.release)
            for broker in reversed(self.brokers.values()):
                rest.callback(broker.close)

    def __enter__(self) -> "Cluster":
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
