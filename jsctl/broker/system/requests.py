"""Answers to `$SYS.REQ.>`: the same reports as over HTTP, asked for by message.

Every addressed server answers, unless the request's filter leaves it out. A request of an
ordinary account is one of a few services that each account imports; it is answered as what the
import stands for, restricted to the account that asks.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from typing import TypeVar

from jsctl.api.codec import DecodeError, decode, dumps, encode, key_of
from jsctl.api.events import AccountNumConns, TypedEvent
from jsctl.api.jsontext import parse
from jsctl.api.monitoring.accountz import AccountStatzOptions, Permissions, UserInfo
from jsctl.api.monitoring.connz import LeafzOptions
from jsctl.api.monitoring.health import ProfilezOptions
from jsctl.api.monitoring.jsz import JSzOptions
from jsctl.api.server import EventFilterOptions, KickClientReq, ServerInfo
from jsctl.api.strict import kind_of, quoted
from jsctl.api.times import format_time
from jsctl.broker.options import SECOND_NS
from jsctl.broker.protocol import headers as header_block
from jsctl.broker.system.encodings import compressed
from jsctl.broker.system.monitoring.accounts import account_detail, accstatz
from jsctl.broker.system.monitoring.connections import connz, leafz, subsz
from jsctl.broker.system.monitoring.endpoints import SYS_ROUTES, Endpoint, NoOptions
from jsctl.broker.system.monitoring.general import idz, server_info, statsz
from jsctl.broker.system.monitoring.http import plain
from jsctl.broker.system.monitoring.jetstream import jsz_account
from jsctl.broker.system.monitoring.view import ServerView
from jsctl.broker.system.monitoring.words import Absent, NotMine, Refused
from jsctl.dataclass import dataclass, replace

T = TypeVar("T")

# What an ordinary account may ask for -> the service of the system account behind it.
_IMPORTS = {
    "$SYS.REQ.ACCOUNT.PING.CONNZ": "$SYS.REQ.ACCOUNT.{}.CONNZ",
    "$SYS.REQ.SERVER.PING.CONNZ": "$SYS.REQ.ACCOUNT.{}.CONNZ",
    "$SYS.REQ.ACCOUNT.PING.STATZ": "$SYS.REQ.ACCOUNT.{}.STATZ",
    "$SYS.REQ.USER.INFO": "$SYS.REQ.USER.{}.INFO",
}
ACCOUNT_CONNECTIONS = "io.nats.server.advisory.v1.account_connections"


class ActionKind(Enum):
    """What a system request may want done."""

    RELOAD = "RELOAD"
    KICK = "KICK"
    LAME_DUCK = "LDM"


_ACTIONS = {kind.value: kind for kind in ActionKind}


@dataclass(frozen=True, slots=True)
class Requester:
    """Whose connection a request came from."""

    account: str
    user: str = ""
    account_tag: str = ""
    user_tag: str = ""
    permissions: Permissions | None = None
    expires_ns: int = 0
    """When it has to go; 0: never."""


@dataclass(frozen=True, slots=True)
class SysRequest:
    """A message on `$SYS.REQ.>` or `$SYS.DEBUG.>`."""

    subject: str
    reply: str
    headers: bytes
    payload: bytes
    requester: Requester


@dataclass(frozen=True, slots=True)
class SysReply:
    """What to publish on the reply subject."""

    payload: bytes
    headers: bytes = b""


@dataclass(frozen=True, slots=True)
class SysAction:
    """Something the node has to do first; `SysServices.done` then gives the reply."""

    kind: ActionKind
    cid: int = 0


Outcome = SysReply | SysAction | None


def imported_subject(subject: str, account: str) -> str | None:
    """The service that an ordinary account's request stands for; None when it has none."""
    template = _IMPORTS.get(subject)
    return template.format(account) if template is not None else None


@dataclass(slots=True)
class SysServices:
    """Serves system requests. Counts what it sends, as `seq` of the answers tells.

    `new_id` gives a fresh NUID.
    """

    new_id: Callable[[], str]
    system_account: str = "$SYS"
    sequence: int = 0

    def serve(self, view: ServerView, request: SysRequest) -> Outcome:
        """The outcome of one request; None: this server does not answer."""
        subject, requester = request.subject, request.requester
        if requester.account != self.system_account:
            if subject == "$SYS.DEBUG.SUBSCRIBERS":
                return self._subscribers(view, requester.account, request.payload)
            known = imported_subject(subject, requester.account)
            if known is None:
                return None
            subject = known
        tokens = subject.split(".")
        if tokens[:2] == ["$SYS", "DEBUG"] and tokens[2:] == ["SUBSCRIBERS"]:
            return self._subscribers(view, requester.account, request.payload)
        if tokens[:2] != ["$SYS", "REQ"] or len(tokens) < 4:
            return None
        if tokens[2] == "SERVER" and len(tokens) <= 5:
            return self._server(view, tokens[3], tokens[4] if len(tokens) == 5 else "", request)
        if tokens[2] == "ACCOUNT":
            return self._account(view, tokens[3:], request)
        if tokens[2] == "USER":
            return self._user_info(view, request)
        return None

    def done(self, view: ServerView, error: str = "", headers: bytes = b"") -> SysReply:
        """The reply after an action, with what went wrong; `headers` are the request's."""
        if error:
            return self._failure(view, 500, error)
        return _compressed(dumps({"server": self._head(view)}), headers)

    def server(self, view: ServerView) -> ServerInfo:
        """This server as the head of the next message."""
        self.sequence += 1
        return server_info(view, self.sequence)

    # ---- by subject

    def _server(self, view: ServerView, target: str, kind: str, request: SysRequest) -> Outcome:
        if target not in ("PING", view.settings.server_id):
            return None
        if kind in ("", "STATSZ"):
            return self._statsz(view, request)
        if kind == "IDZ":
            return SysReply(dumps(idz(view)))
        if kind in _ACTIONS and target != "PING":
            return self._action(view, _ACTIONS[kind], request)
        if kind in _NOT_HERE:
            return self._report(view, request, *_NOT_HERE[kind])
        endpoint = SYS_ROUTES.get(kind)
        if endpoint is None or kind == "ACCSTATZ":
            return None
        return self._report(view, request, endpoint.options, endpoint.answer)

    def _account(self, view: ServerView, tokens: list[str], request: SysRequest) -> Outcome:
        if tokens == ["NSUBS"]:
            return self._count(view, request.payload)
        if len(tokens) != 2:
            return None
        account, kind = tokens
        if kind == "CONNS":
            return self._connections(view, account, request.payload)
        if account == "PING" and kind != "STATZ":
            return None
        found = _account_reports(account).get(kind)
        if found is None:
            return None
        return self._report(view, request, *found)

    def _statsz(self, view: ServerView, request: SysRequest) -> Outcome:
        try:
            document = _document(request.payload)
            if _filtered(view, _fill(EventFilterOptions, document)):
                return None
        except DecodeError as error:
            return self._failure(view, 400, str(error))
        return SysReply(dumps({"server": self._head(view), "statsz": encode(statsz(view))}))

    def _user_info(self, view: ServerView, request: SysRequest) -> Outcome:
        who = request.requester
        data = UserInfo(
            user=who.user,
            account=who.account,
            account_name=who.account_tag or who.account,
            user_name=who.user_tag,
            permissions=who.permissions,
            expires=_whole_seconds(who.expires_ns - view.now_ns) if who.expires_ns else 0,
        )
        return SysReply(dumps({"server": self._head(view), "data": encode(data)}))

    def _action(self, view: ServerView, kind: ActionKind, request: SysRequest) -> Outcome:
        if not request.reply:
            return None  # As in nats-server: who orders something hears what came of it.
        try:
            document = _document(request.payload)
            cid = _fill(KickClientReq, document).cid
            if _filtered(view, _fill(EventFilterOptions, document)):
                return None
        except DecodeError as error:
            return self._failure(view, 400, str(error))
        return SysAction(kind, cid)

    def _connections(self, view: ServerView, account: str, payload: bytes) -> Outcome:
        """The old form of STATZ: bare, and only from servers with connections."""
        try:
            wanted = _document(payload).get("acc", account)
        except DecodeError:
            return None
        if wanted != account:
            return None
        stats = accstatz(view, AccountStatzOptions(accounts=(account,))).account_statz
        if not stats:
            return None
        head = TypedEvent(
            type=ACCOUNT_CONNECTIONS, id=self.new_id(), timestamp=format_time(view.now_ns)
        )
        server = self.server(view)
        return SysReply(dumps(AccountNumConns(head=head, server=server, stat=stats[0])))

    def _count(self, view: ServerView, payload: bytes) -> Outcome:
        """Number of local subscriptions that a subject reaches."""
        try:
            document = _document(payload)
            queue = _group(document.get("queue", ""))
        except DecodeError:
            return None
        account, subject = document.get("acc"), document.get("subject")
        if not isinstance(account, str) or not isinstance(subject, str):
            return None
        stats = accstatz(view, AccountStatzOptions(accounts=(account,))).account_statz
        if not stats:
            return None
        return SysReply(str(view.reached(account, subject, queue)).encode())

    def _subscribers(self, view: ServerView, account: str, payload: bytes) -> Outcome:
        """Number of local subscriptions, for `subject` or `subject queue`."""
        words = payload.decode("utf-8", "replace").split()
        if not words:
            return SysReply(b"0")
        queue = words[1] if len(words) > 1 else ""
        return SysReply(str(view.reached(account, words[0], queue)).encode())

    # ---- the common shape of answers

    def _report(
        self,
        view: ServerView,
        request: SysRequest,
        options: type,
        answer: Callable[..., object],
    ) -> Outcome:
        if not request.reply:
            return None
        try:
            document = _document(request.payload)
            if _filtered(view, _fill(EventFilterOptions, document)):
                return None
            data = answer(view, _fill(options, document))
        except DecodeError as error:
            return self._failure(view, 400, str(error))
        except Absent:
            data = {}
        except Refused as error:
            return self._failure(view, 500, str(error), data=None)
        except NotMine:
            return None
        body = dumps({"server": self._head(view), "data": plain(data)})
        return _compressed(body, request.headers)

    def _failure(self, view: ServerView, code: int, text: str, **shown: None) -> SysReply:
        """An error. A report that failed shows `data` as null, as the real server does."""
        error = {"code": code, "description": text}
        return SysReply(dumps({"server": self._head(view), **shown, "error": error}))

    def _head(self, view: ServerView) -> dict[str, object]:
        return encode(self.server(view))


def _no_profile(_view: ServerView, options: ProfilezOptions) -> object:
    """As nats-server answers for a name that it does not know."""
    error = f"Profile {quoted(options.name)} not found" if options.name else _NAMELESS
    return {"profile": None, "error": error}


def _no_variables(_view: ServerView, _options: NoOptions) -> object:
    raise Refused("this server has no variables of Go's runtime")


_NAMELESS = "Profile name not specified"
_NOT_HERE: Mapping[str, tuple[type, Callable[..., object]]] = {
    "PROFILEZ": (ProfilezOptions, _no_profile),
    "EXPVARZ": (NoOptions, _no_variables),
}
"""What tells of Go's runtime. Who asks hears at once that there is none: those who gather all that
a server knows would wait for each of it."""


def _account_reports(account: str) -> dict[str, tuple[type, Callable[..., object]]]:
    """Reports about one account: kind -> (class of the options, answer)."""

    def statz(view: ServerView, options: AccountStatzOptions) -> object:
        wanted = options if account == "PING" else replace(options, accounts=(account,))
        found = accstatz(view, wanted)
        if not found.account_statz and not options.include_unused:
            raise NotMine("no connections")
        return found

    def of_account(
        endpoint: Endpoint, answer: Callable[..., object], attr: str, **more: object
    ) -> tuple[type, Callable[..., object]]:
        return endpoint.options, lambda view, options: answer(
            view, replace(options, **{attr: account, **more})
        )

    return {
        "STATZ": (AccountStatzOptions, statz),
        "INFO": (NoOptions, lambda view, _: account_detail(view, account)),
        "JSZ": (JSzOptions, lambda view, o: jsz_account(view, replace(o, account=account))),
        "LEAFZ": (LeafzOptions, lambda view, o: leafz(view, replace(o, account=account))),
        "CONNZ": of_account(SYS_ROUTES["CONNZ"], connz, "acc"),
        "SUBSZ": of_account(SYS_ROUTES["SUBSZ"], subsz, "account", subscriptions=True),
    }


def _whole_seconds(length_ns: int) -> int:
    return max(length_ns // SECOND_NS, 0) * SECOND_NS


def _document(payload: bytes) -> dict[str, object]:
    """The request's JSON object; empty for an empty payload. Raises DecodeError."""
    if not payload:
        return {}
    try:
        document = parse(payload)
    except DecodeError as error:
        # The place is told by the JetStream API only.
        raise DecodeError(str(error).partition(" at offset ")[0]) from None
    if document is None:
        return {}
    if isinstance(document, dict):
        return document
    raise DecodeError(
        f"json: cannot unmarshal {kind_of(document)} into Go value of type"
        " server.EventFilterOptions"
    )


def _group(said: object) -> str:
    """The name of a queue group, which is told in base64. Raises DecodeError."""
    if not isinstance(said, str):
        raise DecodeError("a queue group is text")
    try:
        return b64decode(said, validate=True).decode("utf-8", "replace")
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _fill(kind: type[T], document: Mapping[str, object]) -> T:
    """Options from the keys that are theirs; the filter's are in the same object."""
    keys = {key_of(kind, declared.name) for declared in fields(kind)}  # type: ignore[arg-type]
    try:
        return decode(kind, {k: v for k, v in document.items() if k in keys}, strict=True)
    except DecodeError as error:
        # The real server names the type that holds both, options and filter.
        name = kind.__name__
        whole = name.replace("JSz", "Jsz").replace("Options", "EventOptions")
        raise DecodeError(str(error).replace(name, whole)) from None


def _filtered(view: ServerView, wanted: EventFilterOptions) -> bool:
    """Whether a request leaves this server out."""
    settings = view.settings
    for asked, mine in (
        (wanted.server_name, settings.server_name),
        (wanted.host, settings.host),
        (wanted.cluster, settings.cluster_name),
    ):
        if asked and (asked != mine if wanted.exact_match else asked not in mine):
            return True
    if any(tag.lower() not in settings.tags for tag in wanted.tags):
        return True
    return bool(wanted.domain) and wanted.domain != settings.domain


def _compressed(body: bytes, headers: bytes) -> SysReply:
    """The reply in the encoding that the request accepts."""
    wanted = header_block.get(headers, b"Accept-Encoding") if headers else None
    return SysReply(*compressed(body, (wanted or b"").decode(errors="replace")))
