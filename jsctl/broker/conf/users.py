"""The `authorization` block: users, their passwords and their permissions.

Nothing here is passed over: what is not carried out would open what it was to close.
"""

from collections.abc import Callable, Iterable

from jsctl.broker.conf.fields import (
    Field,
    Reading,
    Section,
    array,
    boolean,
    integer,
    make,
    mapping,
    rejected,
    text,
    texts,
    timeout,
    wrong_kind,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.units import duration_ns
from jsctl.broker.login_options.permissions import (
    PermissionRules,
    ResponsePermission,
    SubjectPermission,
)
from jsctl.broker.nkey import KeyKind, decode, is_seed
from jsctl.broker.options import MINUTE_NS, SECOND_NS, AuthOptions, UserOptions
from jsctl.broker.passwords import looks_hashed, parse_hash
from jsctl.broker.subject.validity import is_valid_subject
from jsctl.dataclass import replace

LOGIN_TIME_HIGH_NS = MINUTE_NS
CONNECTION_TYPES = (
    "STANDARD",
    "WEBSOCKET",
    "LEAFNODE",
    "LEAFNODE_WS",
    "MQTT",
    "MQTT_WS",
    "IN_PROCESS",
)


def subjects(node: ConfigNode, reading: Reading, queues: bool) -> tuple[str, ...]:
    """Valid subjects; with `queues` each may be followed by a queue name, and one space is between
    them then."""
    found: list[str] = []
    for subject in texts(node, reading):
        parts = subject.split() if queues else []
        parts = parts if len(parts) == 2 else [subject]
        if not all(is_valid_subject(part.encode()) for part in parts):
            raise node.error(
                f"{subject!r} is not a valid subject", "tokens are separated by single dots"
            )
        found.append(" ".join(parts))
    return tuple(found)


def subject_permission(
    node: ConfigNode, reading: Reading, queues: bool
) -> SubjectPermission | None:
    """A subject, a list of them, or a map of `allow` and `deny`."""
    if not isinstance(node.content, dict):
        return SubjectPermission(allow=subjects(node, reading, queues))
    section = Section(
        Field(("allow",), "allow", lambda n, r: subjects(n, r, queues)),
        Field(("deny",), "deny", lambda n, r: subjects(n, r, queues)),
        once=True,
    )
    found = section.read(node, reading, "a permission")
    return make(SubjectPermission, found) if found else None


def publish(node: ConfigNode, reading: Reading) -> SubjectPermission | None:
    """What may be published."""
    return subject_permission(node, reading, queues=False)


def subscribe(node: ConfigNode, reading: Reading) -> SubjectPermission | None:
    """What may be subscribed; entries may name a queue."""
    return subject_permission(node, reading, queues=True)


def responses(node: ConfigNode, reading: Reading) -> ResponsePermission | None:
    """`allow_responses`: true, or a map of `max` and `expires`."""
    if isinstance(node.content, bool):
        return ResponsePermission() if node.content else None
    return make(ResponsePermission, RESPONSES.read(node, reading, "allow_responses"))


def answers_max(node: ConfigNode, reading: Reading) -> int:
    """How many answers; 0 means the default, a negative number any."""
    return integer(node, reading) or ResponsePermission().messages_max


def answers_time(node: ConfigNode, reading: Reading) -> int:
    """Nanoseconds of a duration with its unit; 0 means the default, a negative one for ever."""
    del reading
    found = duration_ns(node.content) if isinstance(node.content, str) else None
    if found is None:
        raise wrong_kind(node, "a duration", 'write for example "2m"')
    return found or ResponsePermission().expires_ns


def permissions(node: ConfigNode, reading: Reading) -> PermissionRules:
    """A `permissions` map. `allow_responses` alone forbids all other publishing."""
    found = make(PermissionRules, PERMISSIONS.read(node, reading, "permissions"))
    if found.responses and (found.publish is None or found.publish.allow is None):
        deny = found.publish.deny if found.publish else ()
        found = replace(found, publish=SubjectPermission(allow=(), deny=deny))
    return found


def connection_types(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """Names of connection types, in upper case."""
    found = tuple(name.upper() for name in texts(node, reading))
    if not found:
        raise node.error("it is empty: all types could connect", "name one, or remove it")
    for name in found:
        if name not in CONNECTION_TYPES:
            raise node.error(
                f"unknown connection type {name!r}", f"write one of {', '.join(CONNECTION_TYPES)}"
            )
    return found


def login_word(node: ConfigNode, reading: Reading) -> str:
    """A user, password or token. An empty one is mostly a variable that nobody has set."""
    value = text(node, reading)
    if not value:
        raise node.error("it is empty: nobody would need it to log in", "write one, or remove it")
    return value


def secret(node: ConfigNode, reading: Reading) -> str:
    """A password or token: plain, or a bcrypt hash. What looks like one has to be one."""
    value = login_word(node, reading)
    if looks_hashed(value) and parse_hash(value) is None:
        raise node.error(
            "it begins like a bcrypt hash and is none", "hash the password again, or quote it whole"
        )
    return value


def user(node: ConfigNode, reading: Reading) -> UserOptions:
    """One entry of a `users` array."""
    mapping(node)
    found = make(UserOptions, USER.read(node, reading, "a user"))
    if found.nkey:
        if decode(found.nkey, KeyKind.USER) is None:
            raise node.error(
                "not a valid public nkey for a user", "it begins with U and has 56 characters"
            )
        if found.name or found.password:
            raise node.error(
                "nkey users do not take usernames or passwords", "keep either the nkey or the user"
            )
    elif not found.name:
        raise node.error("a user entry requires a user", 'add "user" or "nkey"')
    return found


def proxy_required(node: ConfigNode, reading: Reading) -> bool:
    """Only false: there is no proxy protocol that could prove a proxy."""
    if boolean(node, reading):
        raise node.error(
            "proxy_required is not supported: proxies cannot be told from clients", "remove it"
        )
    return False


def login_time(node: ConfigNode, reading: Reading) -> int:
    """How long a client may take to log in; 0 means the default."""
    value = timeout(node, reading)
    if value < 0:
        raise node.error("nobody could log in in no time", "write for example 2")
    if value > LOGIN_TIME_HIGH_NS:
        reason = f"{value / SECOND_NS:g} seconds are long for who says nothing"
        remedy = 'keep it under 60 seconds; an unquoted 1m is one million, "1m" is a minute'
        reading.warnings.append(f"{node.place}: timeout: {reason} ({remedy})")
        reading.strict_errors.append(node.error(f"timeout: {reason}", remedy))
    return value


def users(node: ConfigNode, reading: Reading) -> tuple[UserOptions, ...]:
    """The `users` array."""
    return tuple(user(item, reading) for item in array(node))


def with_defaults(
    entries: Iterable[UserOptions], default: PermissionRules | None
) -> tuple[UserOptions, ...]:
    """The users, those without permissions given the default ones."""
    if default is None:
        return tuple(entries)
    return tuple(u if u.permissions else replace(u, permissions=default) for u in entries)


def authorization(node: ConfigNode, reading: Reading) -> AuthOptions:
    """The top level `authorization` block. Raises ConfigError for what excludes each other,
    and for what looks as if somebody had to log in when nobody would have to."""
    block = AUTHORIZATION.read(node, reading, "authorization")
    found = make(AuthOptions, block)
    if "users" in block and not found.users:
        raise node.error(
            "users is empty: nobody would have to log in", "name a user, or remove users"
        )
    if found.password and not (found.user or found.token):
        raise node.error("a password without a user: nobody would have to log in", "add the user")
    if (found.user or found.password) and found.token:
        raise node.error(
            "cannot have both a token and a user/password", "remove the token or the user"
        )
    if found.users and (found.user or found.token):
        what = "a user/password" if found.user else "a token"
        raise node.error(f"cannot have {what} and a users array", f"move {what} into the array")
    check_duplicates(node, found.users)
    users_ = with_defaults(found.users, found.default_permissions)
    return replace(found, given=True, users=users_)


def check_duplicates(node: ConfigNode, entries: Iterable[UserOptions]) -> None:
    """Raise ConfigError if two users share a name or nkey."""
    seen: set[str] = set()
    for entry in entries:
        name = entry.name or entry.nkey
        if name in seen:
            raise node.error(f"duplicate user {name!r} detected", "remove one of them")
        seen.add(name)


RESPONSES = Section(
    Field(("max", "max_msgs", "max_messages", "max_responses"), "messages_max", answers_max),
    Field(("expires", "expiration", "ttl"), "expires_ns", answers_time),
    once=True,
)
PERMISSIONS = Section(
    Field(("publish", "pub", "import"), "publish", publish),
    Field(("subscribe", "sub", "export"), "subscribe", subscribe),
    Field(("allow_responses", "publish_allow_responses"), "responses", responses),
    once=True,
)
USER = Section(
    Field(("user", "username"), "name", text),
    Field(("password", "pass"), "password", secret),
    Field(("nkey",), "nkey", text),
    Field(("permissions", "permission", "authorization"), "permissions", permissions),
    Field(
        ("allowed_connection_types", "connection_types", "clients"),
        "connection_types",
        connection_types,
    ),
    Field(("proxy_required",), "proxy_required", proxy_required),
    once=True,
)
AUTHORIZATION = Section(
    Field(("user", "username"), "user", login_word),
    Field(("password", "pass"), "password", secret),
    Field(("token",), "token", secret),
    Field(("users",), "users", users),
    Field(("timeout",), "timeout_ns", login_time),
    Field(
        ("default_permissions", "default_permission", "permissions"),
        "default_permissions",
        permissions,
    ),
    rejected(
        "auth_callout",
        "auth_hook",
        why="nobody would be asked who may connect",
        remedy="list the users here",
    ),
    Field(("proxy_required",), "", proxy_required),
    once=True,
)


def user_seed(what: str) -> Callable[[ConfigNode, Reading], str]:
    """Reads the seed of a user's nkey; it is not repeated in errors."""

    def read(node: ConfigNode, reading: Reading) -> str:
        value = text(node, reading)
        if not is_seed(value, KeyKind.USER):
            raise node.error(f"{what} is not a valid seed", "it begins with SU")
        return value

    return read
