"""What accounts have on other servers: their limits of connections and leaf nodes count everywhere.

Servers tell each other how many of both an account has there (`$SYS.SERVER.ACCOUNT.<name>.CONNS`):
when that changes, and every 30 s while there are some. What a server said last counts until it says
that it goes, or was silent for long. Only accounts that have such a limit are listened to.

Whoever is heard of for the first time may have been there longer than this server, and an account
may get a limit by a reload: then all are asked. What comes may be wrong: a message that cannot be
read changes nothing, and no more servers are kept than there is room for.
"""

from typing import NamedTuple, TypeGuard

from jsctl.api.jsontext import parse_object
from jsctl.api.strict import DecodeError
from jsctl.broker.accounts.accounts import GLOBAL, Account
from jsctl.broker.interest.targets import Sink, Subscription
from jsctl.broker.options import SECOND_NS
from jsctl.broker.routing.router import Router
from jsctl.broker.subject.validity import is_valid_literal
from jsctl.dataclass import dataclass

SERVERS_MAX = 10_000
"""One more is not heard."""
ID_LENGTH_MAX = 256
COUNT_MAX = (1 << 31) - 1
BODY_BYTES_MAX = 1 << 16
SILENT_NS = 150 * SECOND_NS
"""A server that says nothing for so long is gone: five times what is between two heartbeats."""
SWEEP_NS = 90 * SECOND_NS
ASK_NS = SECOND_NS
"""At least this is between two questions to all."""
ALIVE = b"STATSZ"
GOING = (b"SHUTDOWN", b"LAMEDUCK")


class FarConnections(NamedTuple):
    """Of one account on one server, which a message tells."""

    server: str
    account: str
    clients: int
    leafs: int


@dataclass(slots=True)
class _FarServer:
    heard_ns: int
    accounts: dict[str, FarConnections]


class FarAccounts:
    """See the module. The owner of the sinks that hear of other servers."""

    def __init__(self, router: Router, system: Account, server_id: str) -> None:
        self._router = router
        self._system = system
        self._server_id = server_id
        self._inbox = f"$SYS._INBOX_.{server_id}".encode()
        self._servers: dict[str, _FarServer] = {}
        self._subs: dict[bytes, Subscription] = {}
        self._limited: dict[str, Account] = {}
        self._begun = self._asking = False
        self._asked_ns = 0
        self._sweep_ns = 0

    def follow(self) -> None:
        """Accounts or limits may have changed: hear of those that have one."""
        before = set(self._limited)
        self._limited = {one.name: one for one in self._router.accounts if _is_limited(one)}
        self._listen()
        for server in self._servers.values():
            for name in server.accounts.keys() - self._limited.keys():
                del server.accounts[name]
        for account in self._router.accounts:
            self._add_up(account)
        self._asking |= self._begun and bool(self._limited.keys() - before)
        self._begun = True

    def _listen(self) -> None:
        wanted = {_counts_subject(name) for name in self._limited}
        if wanted:
            wanted |= {b"$SYS.SERVER.*." + kind for kind in (ALIVE, *GOING)} | {self._inbox}
        for subject in self._subs.keys() - wanted:
            self._router.unsubscribe(self._subs.pop(subject))
        for subject in sorted(wanted - self._subs.keys()):
            sink = Sink(self, self._system)
            self._subs[subject] = self._router.subscribe(self._system, subject, sink)

    def take(self, sink: Sink) -> list[Account]:
        """What others said came; the accounts of which something was told."""
        changed: dict[str, Account] = {}
        for subject, _, _, payload, _ in sink.take():
            server, _, kind = subject.removeprefix(b"$SYS.SERVER.").partition(b".")
            if kind == ALIVE:
                self._hear(server.decode(errors="replace"))
            elif kind in GOING:
                self._forget(server.decode(errors="replace"))
            elif (told := read(payload)) is not None and self._note(told):
                changed[told.account] = self._limited[told.account]
        return list(changed.values())

    def _hear(self, name: str) -> _FarServer | None:
        """Another server is there; None for this one, and where there is no room."""
        now_ns, found = self._router.now_ns, self._servers.get(name)
        if found is not None:
            found.heard_ns = now_ns
        elif name != self._server_id and self._has_room(name):
            found = self._servers[name] = _FarServer(now_ns, {})
            self._asking = True
        return found

    def _has_room(self, name: str) -> bool:
        return len(name) <= ID_LENGTH_MAX and len(self._servers) < SERVERS_MAX

    def _note(self, told: FarConnections) -> bool:
        account, server = self._limited.get(told.account), self._hear(told.server)
        if account is None or server is None:
            return False
        server.accounts[told.account] = told
        self._add_up(account)
        return True

    def _forget(self, name: str) -> None:
        gone = self._servers.pop(name, None)
        for account in gone.accounts if gone is not None else ():
            self._add_up(self._limited[account])

    def _add_up(self, account: Account) -> None:
        servers = self._servers.values()
        told = [one.accounts[account.name] for one in servers if account.name in one.accounts]
        account.far_connections = sum(one.clients for one in told)
        account.far_leafs = sum(one.leafs for one in told)

    def tick(self, now_ns: int) -> bool:
        """Ask what has to be asked, and let go who is silent; whether somebody was asked, who may
        not know of this server either."""
        asks = self._asking and now_ns >= self._asked_ns + ASK_NS
        if asks:
            self._asking, self._asked_ns = False, now_ns
            for name in self._limited:
                subject = f"$SYS.REQ.ACCOUNT.{name}.CONNS".encode()
                self._router.publish(self._system, subject, b"", reply=self._inbox)
        if now_ns >= self._sweep_ns:
            self._sweep_ns = now_ns + SWEEP_NS
            for name, server in list(self._servers.items()):
                if now_ns - server.heard_ns > SILENT_NS:
                    self._forget(name)
        return asks

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        if self._asking:
            return self._asked_ns + ASK_NS
        return self._sweep_ns if self._servers else None


def read(payload: bytes) -> FarConnections | None:
    """What a message tells; None for one that is not what it should be."""
    try:
        body = parse_object(payload, bytes_max=BODY_BYTES_MAX)
    except DecodeError:
        return None
    server, account = body.get("server"), body.get("acc")
    name = server.get("id") if isinstance(server, dict) else None
    clients, leafs = body.get("conns", 0), body.get("leafnodes", 0)
    if not isinstance(name, str) or not isinstance(account, str):
        return None
    if not _is_count(clients) or not _is_count(leafs):
        return None
    return FarConnections(name, account, clients, leafs)


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= COUNT_MAX


def _is_limited(account: Account) -> bool:
    """Nobody tells what the global account has, as it is another one on each server."""
    limits = account.limits
    if account.name == GLOBAL or not is_valid_literal(_counts_subject(account.name)):
        return False
    return limits.connections_max >= 0 or limits.leafnodes_max >= 0


def _counts_subject(account: str) -> bytes:
    return f"$SYS.SERVER.ACCOUNT.{account}.CONNS".encode()
