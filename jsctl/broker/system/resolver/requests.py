"""Requests about the JWTs of accounts: new ones, questions for one or all, deletions.

What is to change is checked here and carried out by the edge, which writes files and takes on the
accounts; who asked hears of it then. All servers hear each request, and each one answers.
"""

from collections.abc import Mapping
from dataclasses import field

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.claims.ages import is_newer
from jsctl.broker.claims.verifying import NotBelieved, Said, account, deletion, read_account
from jsctl.broker.interest.targets import Captured, Sink, Subscription
from jsctl.broker.login_options.operators import OperatorOptions, ResolverKind
from jsctl.broker.nkey import KeyKind, decode
from jsctl.broker.options import MILLISECOND_NS, SECOND_NS
from jsctl.broker.system.outlet import EventOutlet
from jsctl.broker.system.resolver.exchange import KnownTokens, hash_of, lasting, packed, unpacked
from jsctl.broker.system.server import ServerParts
from jsctl.broker.turn import ClaimsChange
from jsctl.dataclass import dataclass

UPDATES = (b"$SYS.REQ.ACCOUNT.*.CLAIMS.UPDATE", b"$SYS.ACCOUNT.*.CLAIMS.UPDATE")
PACK = b"$SYS.REQ.CLAIMS.PACK"
RESPONDER = b"responder"
SOON_NS = 250 * MILLISECOND_NS
"""So long after another server came it is asked what it has."""
WAITING_MAX = 10_000
"""Changes that wait for the edge; one more is refused."""
ABOUT_CLAIMS = ("", "REQACCOUNT", "ACCOUNT")
"""What a subject has between `$SYS` and an account, or `REQ` alone, before `CLAIMS`."""
ALL_TOKENS = 4
"""Of a subject that names no account."""
NOBODY = "n/a"
Document = dict[str, object]
Answers = list[tuple[bytes, Document | bytes]]
"""(reply subject, what is said there); a document is still to be told who answers."""


@dataclass(slots=True)
class _Wanted:
    """What one request wants to be changed."""

    reply: bytes
    account: str
    """Empty for a deletion, which may be of several."""
    left: int
    count: int
    errors: list[str] = field(default_factory=list)


class Resolver:
    """See the module."""

    def __init__(self, server: ServerParts, system: Account, outlet: EventOutlet) -> None:
        self._server = server
        self._system = system
        self._inbox = f"$SYS._INBOX_{outlet.server_id}.CLAIMS.PACK".encode()
        self._known = KnownTokens()
        self._orders: dict[int, _Wanted] = {}
        self._under_way: dict[str, str] = {}
        """Account -> the JWT that the last change of it has."""
        self._changes: list[ClaimsChange] = []
        self._ticket = 0
        self._responder: Subscription | None = None
        self._others = 0
        self._asks_ns: int | None = None

    @property
    def _operator(self) -> OperatorOptions:
        return self._server.options.operator

    @property
    def _full(self) -> bool:
        return self._operator.resolver.kind is ResolverKind.FULL

    @property
    def _tokens(self) -> Mapping[str, str]:
        return self._known.of(self._operator.resolver)

    @property
    def _now_s(self) -> int:
        return self._server.router.now_ns // SECOND_NS

    def listen(self, owner: object) -> None:
        """Be there for requests, which `owner` is to pass on to `serve`."""
        router, system = self._server.router, self._system
        full = (
            b"$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP",
            b"$SYS.REQ.CLAIMS.UPDATE",
            b"$SYS.REQ.CLAIMS.LIST",
            b"$SYS.REQ.CLAIMS.DELETE",
            self._inbox,
        )
        for pattern in (*UPDATES, *(full if self._full else ())):
            router.subscribe(system, pattern, Sink(owner, system))
        if self._full:
            sink = Sink(owner, system)
            self._responder = router.subscribe(system, PACK, sink, queue=RESPONDER)
            self._asks_ns = router.now_ns + self._operator.resolver.interval_ns

    # What other servers have

    def tick(self, now_ns: int) -> None:
        """Ask one of the others now and then, and soon after one came."""
        if self._asks_ns is None:
            return
        links, gates = self._server.links, self._server.gates
        others = len(links.mesh.peers()) if links is not None else 0
        others += len(gates.links()) if gates is not None else 0
        if others > self._others:
            self._asks_ns = min(self._asks_ns, now_ns + SOON_NS)
        self._others = others
        if now_ns >= self._asks_ns:
            self._asks_ns = now_ns + self._operator.resolver.interval_ns
            self._ask()

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        return self._asks_ns

    def _ask(self) -> None:
        """What another one has that this server has not. Its own member of the group is away
        meanwhile: it has nothing to tell."""
        mine, system = self._responder, self._system
        assert mine is not None
        system.sublist.remove(PACK, mine)
        payload = hash_of(self._tokens, self._now_s)
        self._server.router.publish(system, PACK, payload, reply=self._inbox)
        system.sublist.insert(PACK, mine)

    def _merge(self, payload: bytes) -> Answers:
        for name, token in unpacked(payload):
            known = self._under_way.get(name) or self._tokens.get(name, "")
            if not is_newer(token, known):
                continue
            said = read_account(token)
            if said.claims.head.sub == name and not self._refusal(name, said):
                self._change(name, token, None)
        return []

    # Requests

    def serve(self, captured: Captured) -> Answers | None:
        """What is to be answered now; None for a request that is another's."""
        subject, reply, _, payload, _ = captured
        if subject == self._inbox:
            return self._merge(payload)
        tokens = subject.decode("utf-8", "replace").split(".")
        if tokens[-2] != "CLAIMS" or "".join(tokens[1:-3]) not in ABOUT_CLAIMS:
            return None
        name = tokens[-3] if len(tokens) > ALL_TOKENS else ""
        kind = tokens[-1]
        if kind == "UPDATE":
            update = self._update if self._full else self._update_in_memory
            return update(name, payload, reply)
        if not reply:
            return []
        if kind == "LOOKUP":
            return [(reply, self._tokens.get(name, "").encode())]
        if kind == "LIST":
            return [(reply, {"data": [one for one, _ in lasting(self._tokens, self._now_s)]})]
        if kind == "PACK":
            return [(reply, one) for one in packed(self._tokens, payload, self._now_s)]
        return self._delete(payload, reply)

    def _update(self, wanted: str, payload: bytes, reply: bytes) -> Answers:
        """An account has another JWT; `wanted` is whose it has to be, where the subject says so."""
        resulted = "jwt update resulted in error"
        token = payload.decode("utf-8", "replace")
        try:
            said = read_account(token)
        except NotBelieved as error:
            return _failed(reply, NOBODY, resulted, str(error))
        name = said.claims.head.sub
        if said.wrong:
            return _failed(reply, name, "jwt validation failed", f"validation errors: {said.wrong}")
        if wanted and wanted != name:
            return _failed(reply, wanted, resulted, "subject does not match jwt content")
        if refusal := self._refusal(name, said):
            return _failed(reply, name, resulted, refusal)
        if len(self._orders) >= WAITING_MAX:
            return _failed(reply, name, resulted, "too many updates are under way")
        self._change(name, token, _Wanted(reply, name, 1, 1))
        return []

    def _refusal(self, name: str, said: Said) -> str:
        """Why a JWT that makes sense in itself is not one for this server; empty: it is."""
        operator, issuer = self._operator, said.claims.head.iss
        if issuer not in operator.keys:
            strict = "operator requires issuer to be a signing key"
            return strict if operator.strict else "its issuer is no trusted operator"
        if decode(name, KeyKind.ACCOUNT) is None:
            return "invalid public key"
        if said.wrong:
            return said.wrong
        if name == operator.system_account and (untimely := said.untimely(self._now_s)):
            return f"nobody could log in to the system account: {untimely}"
        return ""

    def _update_in_memory(self, wanted: str, payload: bytes, reply: bytes) -> Answers:
        """The same where nothing is stored: accounts that are here change until the next reload,
        others do not come."""
        resulted = "jwt update resulted in error"
        if not payload:
            return _failed(reply, wanted, "jwt update error", "request body is empty")
        token = payload.decode("utf-8", "replace")
        try:
            said = read_account(token)
            if said.claims.head.sub != wanted:
                return _failed(reply, wanted, resulted, "subject does not match jwt content")
            if wanted not in self._tokens:
                return _done(reply, wanted, "jwt update skipped")
            if refusal := self._refusal(wanted, said):
                raise NotBelieved(refusal)
            account(token, self._operator, self._now_s)
        except NotBelieved as error:
            return _failed(reply, wanted, resulted, str(error))
        if len(self._orders) >= WAITING_MAX:
            return _failed(reply, wanted, resulted, "too many updates are under way")
        self._change(wanted, token, _Wanted(reply, wanted, 1, 1))
        return []

    def _delete(self, payload: bytes, reply: bytes) -> Answers:
        try:
            accounts = deletion(payload.decode("utf-8", "replace"), self._operator)
        except NotBelieved as error:
            what = f"delete accounts request by {error.subject} failed"
            return _failed(reply, "", what, str(error))
        wanted = dict.fromkeys(accounts)
        known = [name for name in wanted if name in self._tokens or name in self._under_way]
        if not known:
            return _done(reply, "", f"deleted {len(accounts)} accounts")
        order = _Wanted(reply, "", len(known), len(accounts))
        for name in known:
            self._change(name, "", order)
        return []

    # Changes

    def _change(self, name: str, token: str, order: _Wanted | None) -> None:
        self._ticket += 1
        if order is not None:
            self._orders[self._ticket] = order
        self._under_way[name] = token
        self._changes.append(ClaimsChange(self._ticket, name, token))

    def take_changes(self) -> list[ClaimsChange]:
        """What is to be carried out, in this order."""
        taken, self._changes = self._changes, []
        return taken

    def carried_out(self, told: list[tuple[int, str]]) -> Answers:
        """Some changes came to an end: (ticket, what went wrong)."""
        answers: Answers = []
        for ticket, error in told:
            if ticket == self._ticket:
                self._under_way.clear()
            order = self._orders.pop(ticket, None)
            if order is None:
                continue
            order.left -= 1
            if error:
                order.errors.append(error)
            if not order.left:
                answers += _outcome(order)
        return answers


def _outcome(order: _Wanted) -> Answers:
    errors = order.errors
    if order.account and errors:
        return _failed(order.reply, order.account, "jwt update resulted in error", errors[0])
    if order.account:
        return _done(order.reply, order.account, "jwt updated")
    done = f"deleted {order.count - len(errors)} accounts"
    if errors:
        return _failed(order.reply, "", f"{done}, failed for {len(errors)}", "\n".join(errors))
    return _done(order.reply, "", done)


def _done(reply: bytes, name: str, message: str) -> Answers:
    return _told(reply, "data", name, {"code": 200, "message": message})


def _failed(reply: bytes, name: str, message: str, why: str) -> Answers:
    return _told(reply, "error", name, {"code": 500, "description": f"{message} - {why}"})


def _told(reply: bytes, what: str, name: str, said: Document) -> Answers:
    if not reply:
        return []
    return [(reply, {what: {**({"account": name} if name else {}), **said}})]
