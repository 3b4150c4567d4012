"""Servers of a cluster have the same accounts, also those that were away when one was pushed."""

import json
from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.testing import HOST, Broker
from jsctl.testing.broker import ReservedPort
from tests.contract.conftest import KINDS
from tests.support.resolver_world import ResolverWorld
from tests.support.waiting import wait_for

NUMBERS = count(1)
OURS, THEIRS = "jsctl", "nats-server"
MIXTURES = [(THEIRS, THEIRS, THEIRS), (OURS, OURS, OURS), (THEIRS, OURS, OURS)]


class Companions:
    """Servers of one cluster and one operator, without JetStream."""

    def __init__(self, kinds: tuple[str, ...], directory: str, *, far: bool = False) -> None:
        """`far`: each is a cluster of its own."""
        self.world = ResolverWorld()
        self._ports = ports = [ReservedPort() for _ in kinds]
        urls = [f"nats://{HOST}:{port.number}" for port in ports]
        routes = ", ".join(f'"{url}"' for url in urls)
        gates = ", ".join(f'{{ name: C{n}, urls: ["{url}"] }}' for n, url in enumerate(urls, 1))
        self.servers: list[Broker] = []
        for number, (kind, port) in enumerate(zip(kinds, ports, strict=True), 1):
            place = f'listen: "{HOST}:{port.number}"'
            config = f"cluster {{ name: C, {place}, routes: [{routes}] }}\n"
            if far:
                config = f"gateway {{ name: C{number}, {place}, gateways: [{gates}] }}\n"
            config += self.world.config(f"{directory}/{number}", 'interval: "1s"')
            self.servers.append(KINDS[kind](name=f"n{number}", config=config))

    def launch(self) -> None:
        """Start all of them; their ports are theirs until then."""
        for server, port in zip(self.servers, self._ports, strict=True):
            port.release()
            server.launch()

    def close(self) -> None:
        """Let all of them end."""
        for server in self.servers:
            server.close()

    def meet(self) -> None:
        """Wait until each server hears all others."""
        for server in self.servers:
            if server.running:
                wait_for(partial(self._hears_all, server), f"{server.name} is linked")

    def _hears_all(self, server: Broker) -> bool:
        running = [one for one in self.servers if one.running]
        return len(self.names(server, "$SYS.REQ.SERVER.PING.IDZ", b"", len(running))) == len(
            running
        )

    def names(self, server: Broker, subject: str, payload: bytes, expected: int) -> set[str]:
        """Who answers a request, up to so many; of a refusal nothing is heard."""
        found: set[str] = set()
        with self.world.asking(server) as caller:
            inbox = f"_INBOX.{next(NUMBERS)}"  # Another one each time, as clients have it.
            caller.ask(f"SUB {inbox} 1\r\n".encode())
            said = f"PUB {subject} {inbox} {len(payload)}\r\n".encode() + payload + b"\r\n"
            for line in caller.ask(said) + caller.ask(b"") + caller.ask(b""):
                self._note(found, line)
            while len(found) < expected and subject.endswith("UPDATE"):
                self._note(found, caller.line())
        return found

    @staticmethod
    def _note(found: set[str], line: str) -> None:
        if line.startswith("{"):
            told = json.loads(line)
            assert "error" not in told, told
            found.add(told.get("server", told)["name"])

    def _has(self, server: Broker, account: KeyPair, token: str) -> bool:
        return self.world.look_up_here(server, account.public) == token

    def wait_known(self, account: KeyPair, token: str) -> None:
        """Wait until all have an account, and let its users in."""
        user = self.world.user(account)
        for server in self.servers:
            has_it = partial(self._has, server, account, token)
            wait_for(has_it, f"{server.name} has the account")
            # It is stored first, and counts then.
            comes = partial(self.world.may_come, server, user)
            wait_for(comes, f"{server.name} lets its users in")


CASES = [(kinds, far) for far in (False, True) for kinds in MIXTURES]
NAMES = [f"{place}-{kind}" for place in ("near", "far") for kind in ("theirs", "ours", "mixed")]


@pytest.fixture(scope="module", params=CASES, ids=NAMES)
def companions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Companions]:
    """Three that know each other."""
    kinds, far = request.param
    made = Companions(kinds, str(tmp_path_factory.mktemp("companions")), far=far)
    try:
        made.launch()
        for server in made.servers:
            server.wait_ready()
        made.meet()
        yield made
    finally:
        made.close()


def test_all_servers_take_what_is_pushed_to_one(companions: Companions) -> None:
    world = companions.world
    for server in companions.servers:
        account = generate(KeyKind.ACCOUNT)
        token = world.account(account)
        subject = f"$SYS.REQ.ACCOUNT.{account.public}.CLAIMS.UPDATE"
        names = companions.names(server, subject, token.encode(), 3)
        assert names == {"n1", "n2", "n3"}
        companions.wait_known(account, token)


@pytest.mark.parametrize("away", [0, 1])
def test_a_server_that_was_away_hears_what_it_missed(companions: Companions, away: int) -> None:
    world = companions.world
    companions.meet()
    gone, other = companions.servers[away], companions.servers[2]
    account = generate(KeyKind.ACCOUNT)
    old = world.account(account, name="old", issued_s=1_700_000_000)
    companions.names(other, "$SYS.REQ.CLAIMS.UPDATE", old.encode(), 3)
    companions.wait_known(account, old)
    gone.stop()
    new = world.account(account, name="new")
    added = generate(KeyKind.ACCOUNT)
    for token in (new, world.account(added)):
        companions.names(other, "$SYS.REQ.CLAIMS.UPDATE", token.encode(), 2)
    gone.start()
    companions.wait_known(account, new)
    companions.wait_known(added, world.look_up_here(other, added.public))
