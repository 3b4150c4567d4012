"""API requests as they are captured: from this server's clients, and from foreign servers."""

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.accounts.imports import takes_service
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.targets import Captured, RouteLink, Sink, Subscription
from jsctl.broker.jetstream.requests import ApiRequest, AskerClaims, ClientInfo
from jsctl.broker.options import AccountOptions
from jsctl.broker.protocol.headers import REQUEST_INFO
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions import standing
from jsctl.broker.sessions.session import ClientSession
from jsctl.dataclass import dataclass

_CONSUMER_WORDS = [
    "CREATE",
    "DURABLE",
    "NAMES",
    "LIST",
    "INFO",
    "DELETE",
    "PAUSE",
    "UNPIN",
    "RESET",
    "WAITING",
    "LEADER",
    "PEER",
]
PATTERNS = (
    "INFO",
    "STREAM.>",
    *(f"CONSUMER.{word}.>" for word in _CONSUMER_WORDS),
    "META.>",
    "SERVER.>",
    "ACCOUNT.>",
)
"""What is listened to below the API prefix. Not in here: MSG.NEXT and DIRECT.GET, which are
interest of whoever serves them, so that a request without a server gets "no responders"."""
VIEWS = (b"$KV.", b"$OBJ.")
"""Subjects of buckets, which are reached below a domain's prefix as its API is."""
PREFIX = b"$JS.API."
IMPORTED = REQUEST_INFO + b":"
"""The header by which nats-server tells an importing account's client."""


@dataclass(frozen=True, slots=True)
class ApiSubscriptions:
    """Owner of the sinks of one account. `alias` is the prefix with the domain, or empty."""

    account: str
    system: bool
    alias: bytes


def subscribe_api(router: Router, domain: str) -> None:
    """Listen to the API in every account, but for those that use another one's.

    Other servers are told, so that clients of nats-servers, in this cluster or others, reach it as
    well.
    """
    alias = f"$JS.{domain}.API.".encode() if domain else b""

    def install(account: Account) -> list[Subscription]:
        owner = ApiSubscriptions(account.name, account is router.accounts.system, alias)
        system = router.accounts.system
        elsewhere = system is not None and account is not system
        sink = Sink(owner, account, service=system.name if system and elsewhere else "")
        prefixes = filter(None, (PREFIX, alias))
        patterns = [prefix + one.encode() for prefix in prefixes for one in PATTERNS]
        patterns += [alias + one + b">" for one in VIEWS if alias]
        return [router.subscribe(account, pattern, sink) for pattern in patterns]

    router.services.offer(install, _has_api)


def _has_api(options: AccountOptions) -> bool:
    """As with nats-server: who has no JetStream is told so, if the question stays here."""
    return options.jetstream is not None or not takes_service(options, PREFIX + b"INFO")


def _claims_of(session: ClientSession) -> AskerClaims | None:
    vouched = standing.vouched_of(session)
    return None if vouched is None else AskerClaims(vouched.issuer, vouched.name, vouched.tags)


def request_of(
    owner: ApiSubscriptions, captured: Captured, me: str, cluster: str, name: str
) -> ApiRequest:
    """A captured message as a request. `me` is this server's peer id, `name` its name."""
    subject, reply, headers, payload, origin = captured
    if owner.alias and subject.startswith(owner.alias):
        subject = PREFIX + subject[len(owner.alias) :]
    client = ClientInfo(account=owner.account, server=name, cluster=cluster)
    if isinstance(origin, ClientSession):
        client = ClientInfo(
            account=owner.account,
            user=origin.user,
            server=name,
            cluster=cluster,
            conn=origin.client_id,
            host=origin.remote.remote_host,
            name=origin.greeting.name,
            lang=origin.greeting.lang,
            version=origin.greeting.version,
            start_ns=origin.started_ns,
            claims=_claims_of(origin),
        )
    return ApiRequest(
        account=owner.account,
        subject=subject,
        reply=reply,
        headers=headers,
        payload=payload,
        client=client,
        entry=me,
        system=owner.system,
    )


def meant_in_domain(owner: ApiSubscriptions, captured: Captured) -> bytes:
    """The subject of a bucket that a message below the domain's prefix is for; empty: it is a
    request."""
    if not owner.alias or not captured[0].startswith(owner.alias):
        return b""
    subject = captured[0][len(owner.alias) :]
    return subject if subject.startswith(VIEWS) else b""


def is_twin(owner: ApiSubscriptions, captured: Captured) -> bool:
    """Whether a request is the copy that a nats-server without JetStream sends to the system
    account, by its import of the API; the request itself comes in the client's account."""
    return owner.system and IMPORTED in captured[2]


def from_server(captured: Captured) -> RouteLink | GatewayLink | None:
    """The link that a message came in on; None for a client of this server."""
    origin = captured[4]
    return origin if isinstance(origin, RouteLink | GatewayLink) else None
