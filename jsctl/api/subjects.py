"""Build and take apart `$JS.API`, `$JS.ACK` and `$SYS` subjects.

Subjects are bytes here, as in the broker; builders take names as text. Names are never
escaped: they are checked where they enter.
"""

from jsctl.dataclass import dataclass

API_PREFIX = b"$JS.API."
ACK_PREFIX = b"$JS.ACK."
FLOW_CONTROL_PREFIX = b"$JS.FC."
ADVISORY_PREFIX = b"$JS.EVENT.ADVISORY."
METRIC_PREFIX = b"$JS.EVENT.METRIC."
SERVER_PING = b"$SYS.REQ.SERVER.PING"
USER_INFO = b"$SYS.REQ.USER.INFO"
ACCOUNT_PING_STATZ = b"$SYS.REQ.ACCOUNT.PING.STATZ"
ACCOUNT_PING_CONNZ = b"$SYS.REQ.ACCOUNT.PING.CONNZ"

ROUTES: tuple[tuple[str, str, int], ...] = (
    # operation, words after the prefix, number of names that follow
    ("account_info", "INFO", 0),
    ("stream_create", "STREAM.CREATE", 1),
    ("stream_update", "STREAM.UPDATE", 1),
    ("stream_names", "STREAM.NAMES", 0),
    ("stream_list", "STREAM.LIST", 0),
    ("stream_info", "STREAM.INFO", 1),
    ("stream_delete", "STREAM.DELETE", 1),
    ("stream_purge", "STREAM.PURGE", 1),
    ("stream_check", "STREAM.CHECK", 1),
    ("stream_audit", "STREAM.AUDIT", 1),
    ("stream_verify", "STREAM.VERIFY", 1),
    ("stream_head", "STREAM.HEAD", 1),
    ("stream_schedules", "STREAM.SCHEDULES", 1),
    ("stream_msg_get", "STREAM.MSG.GET", 1),
    ("stream_msg_delete", "STREAM.MSG.DELETE", 1),
    ("stream_snapshot", "STREAM.SNAPSHOT", 1),
    ("stream_restore", "STREAM.RESTORE", 1),
    ("stream_leader_stepdown", "STREAM.LEADER.STEPDOWN", 1),
    ("stream_remove_peer", "STREAM.PEER.REMOVE", 1),
    ("stream_evacuate_peer", "STREAM.PEER.EVACUATE", 1),
    ("stream_rescue", "STREAM.RESCUE", 1),
    ("stream_cancel_move", "STREAM.CANCEL_MOVE", 1),
    ("consumer_create", "CONSUMER.CREATE", 1),
    ("consumer_create_durable", "CONSUMER.DURABLE.CREATE", 2),
    ("consumer_names", "CONSUMER.NAMES", 1),
    ("consumer_list", "CONSUMER.LIST", 1),
    ("consumer_info", "CONSUMER.INFO", 2),
    ("consumer_delete", "CONSUMER.DELETE", 2),
    ("consumer_pause", "CONSUMER.PAUSE", 2),
    ("consumer_unpin", "CONSUMER.UNPIN", 2),
    ("consumer_reset", "CONSUMER.RESET", 2),
    ("consumer_waiting", "CONSUMER.WAITING", 2),
    ("consumer_msg_next", "CONSUMER.MSG.NEXT", 2),
    ("consumer_leader_stepdown", "CONSUMER.LEADER.STEPDOWN", 2),
    ("consumer_remove_peer", "CONSUMER.PEER.REMOVE", 2),
    ("consumer_evacuate_peer", "CONSUMER.PEER.EVACUATE", 2),
    ("direct_get", "DIRECT.GET", 1),
    ("meta_leader_stepdown", "META.LEADER.STEPDOWN", 0),
    ("meta_rescue", "META.RESCUE", 0),
    ("meta_server_remove", "SERVER.REMOVE", 0),
    ("meta_server_evacuate", "SERVER.EVACUATE", 0),
    ("account_purge", "ACCOUNT.PURGE", 1),
    ("account_stream_move", "ACCOUNT.STREAM.MOVE", 2),
    ("account_stream_cancel_move", "ACCOUNT.STREAM.CANCEL_MOVE", 2),
)
"""Every API request. `consumer_create` and `direct_get` may carry more tokens."""

_WORDS = {operation: words for operation, words, _ in ROUTES}
_BY_WORDS = {words.encode(): (operation, names) for operation, words, names in ROUTES}
_OPEN_ENDED = frozenset({"consumer_create", "direct_get"})


@dataclass(frozen=True, slots=True)
class ApiCall:
    """An API subject taken apart; `rest` is what follows the names (filter or subject)."""

    operation: str
    stream: str = ""
    consumer: str = ""
    rest: str = ""


def api_subject(operation: str, *names: str, prefix: bytes = API_PREFIX) -> bytes:
    """The subject of an operation of `ROUTES`; `prefix` ends with a dot."""
    return prefix + ".".join((_WORDS[operation], *names)).encode()


def domain_prefix(domain: str) -> bytes:
    """The API prefix of a JetStream domain."""
    return f"$JS.{domain}.API.".encode()


def parse_api(subject: bytes) -> ApiCall | None:
    """Takes a `$JS.API` subject apart; None for what no request answers to.

    Operations that name something else than a stream put the first name into `stream`
    (ACCOUNT.PURGE: the account; ACCOUNT.STREAM.MOVE: account and stream).
    """
    if not subject.startswith(API_PREFIX):
        return None
    tokens = subject[len(API_PREFIX) :].split(b".")
    for count in (3, 2, 1):
        found = _BY_WORDS.get(b".".join(tokens[:count]))
        if found is not None and len(tokens) >= count:
            return _api_call(*found, [token.decode("utf-8", "replace") for token in tokens[count:]])
    return None


def _api_call(operation: str, names: int, given: list[str]) -> ApiCall | None:
    if len(given) < names or (len(given) > names and operation not in _OPEN_ENDED):
        return None
    if "" in given:
        return None
    stream = given[0] if given else ""
    if operation == "direct_get":
        return ApiCall(operation, stream, "", ".".join(given[1:]))
    return ApiCall(operation, stream, given[1] if len(given) > 1 else "", ".".join(given[2:]))


@dataclass(frozen=True, slots=True)
class AckSubject:
    """A delivery's reply subject taken apart; `time_ns` is when the message was stored."""

    stream: str
    consumer: str
    deliveries: int
    stream_seq: int
    consumer_seq: int
    time_ns: int
    pending: int
    domain: str = ""
    account_hash: str = ""


def ack_prefix(stream: str, consumer: str) -> bytes:
    """What the reply subjects of a consumer start with, dot included; add `ack_tail`."""
    return f"$JS.ACK.{stream}.{consumer}.".encode()


def ack_tail(
    deliveries: int, stream_seq: int, consumer_seq: int, time_ns: int, pending: int
) -> bytes:
    """The numbers of a reply subject."""
    return b"%d.%d.%d.%d.%d" % (deliveries, stream_seq, consumer_seq, time_ns, pending)


def parse_ack(subject: bytes) -> AckSubject | None:
    """Both forms: nine tokens, or eleven and more with domain and account hash."""
    tokens = subject.split(b".")
    if len(tokens) < 9 or tokens[0] != b"$JS" or tokens[1] != b"ACK" or len(tokens) == 10:
        return None
    names = tokens[2:4] if len(tokens) == 9 else tokens[4:6]
    numbers = tokens[4:9] if len(tokens) == 9 else tokens[6:11]
    domain, account = (b"", b"") if len(tokens) == 9 else (tokens[2], tokens[3])
    if not all(number.isdigit() for number in numbers):
        return None
    deliveries, stream_seq, consumer_seq, time_ns, pending = map(int, numbers)
    return AckSubject(
        stream=names[0].decode(),
        consumer=names[1].decode(),
        deliveries=deliveries,
        stream_seq=stream_seq,
        consumer_seq=consumer_seq,
        time_ns=time_ns,
        pending=pending,
        domain="" if domain == b"_" else domain.decode(),
        account_hash=account.decode(),
    )


def server_request(kind: str, server_id: str = "PING") -> bytes:
    """`$SYS.REQ.SERVER.<id or PING>.<kind>`; an empty kind is the plain ping."""
    return f"$SYS.REQ.SERVER.{server_id}.{kind}".rstrip(".").encode()


def account_request(account: str, kind: str) -> bytes:
    """`$SYS.REQ.ACCOUNT.<account>.<kind>`."""
    return f"$SYS.REQ.ACCOUNT.{account}.{kind}".encode()


def parse_server_request(subject: bytes) -> tuple[str, str] | None:
    """Server id (or PING) and kind (empty for the plain ping) of a server request."""
    tokens = subject.decode("utf-8", "replace").split(".")
    if tokens[:3] != ["$SYS", "REQ", "SERVER"] or len(tokens) not in (4, 5) or not tokens[3]:
        return None
    return tokens[3], tokens[4] if len(tokens) == 5 else ""


def advisory(*words: str) -> bytes:
    """`$JS.EVENT.ADVISORY.<words>`."""
    return ADVISORY_PREFIX + ".".join(words).encode()


def account_event(account: str, kind: str) -> bytes:
    """`$SYS.ACCOUNT.<account>.<kind>`, e.g. CONNECT."""
    return f"$SYS.ACCOUNT.{account}.{kind}".encode()


def server_event(server_id: str, kind: str) -> bytes:
    """`$SYS.SERVER.<id>.<kind>`, e.g. STATSZ."""
    return f"$SYS.SERVER.{server_id}.{kind}".encode()
