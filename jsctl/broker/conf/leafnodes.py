"""The `leafnodes` block: servers that may hang on this one, and hubs that this one hangs on.

What it says of accounts is checked when the whole file is known: `Reading.later`.
"""

import re
from urllib.parse import unquote, urlsplit

from jsctl.broker.compression_options import AUTO
from jsctl.broker.conf.blocks import tls
from jsctl.broker.conf.fields import (
    Field,
    Found,
    Reader,
    Reading,
    Section,
    array,
    boolean,
    compression,
    duration,
    listen,
    make,
    not_negative,
    port,
    positive,
    remote_url,
    text,
    unused,
    write_timeout,
    wrong_kind,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.users import (
    login_time,
    login_word,
    proxy_required,
    secret,
    subjects,
    user_seed,
)
from jsctl.broker.errors import ConfigError
from jsctl.broker.leafnode_options import (
    LEAFNODE_PORT,
    LeafLogin,
    LeafNodeOptions,
    LeafRemote,
    LeafUrl,
    LeafUser,
)
from jsctl.broker.nkey import KeyKind, decode
from jsctl.broker.options import GLOBAL_ACCOUNT, SYSTEM_ACCOUNT, Options
from jsctl.broker.tls_options import SECOND_NS

VERSION_MIN = (2, 8, 0)
VERSION = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:-[\w.]+)?")
WEB_SCHEMES = ("ws", "wss")


def leafnodes(node: ConfigNode, reading: Reading) -> LeafNodeOptions:
    """The whole block."""
    found = LEAFNODES.read(node, reading, "leafnodes")
    address = found.pop("listen", None)
    if isinstance(address, tuple):
        found |= {"host": address[0], "port": address[1]}
    return make(LeafNodeOptions, found)


def authorization(node: ConfigNode, reading: Reading) -> LeafLogin:
    """A user, an nkey, or users. Raises ConfigError for what looks as if somebody had to log in
    when nobody would have to."""
    block = AUTHORIZATION.read(node, reading, "leafnodes authorization")
    found = make(LeafLogin, block)
    if found.password and not found.user:
        raise node.error("a password without a user: nobody would have to log in", "add the user")
    if "users" in block and not found.users:
        raise node.error(
            "users is empty: nobody would have to log in", "name a user, or remove users"
        )
    for one, what in ((found.user, "user/pass"), (found.nkey, "nkey")):
        if found.users and one:
            raise node.error(
                f"can not have a single {what} and a users array", "move it into the array"
            )
    return found


def users(node: ConfigNode, reading: Reading) -> tuple[LeafUser, ...]:
    """Users of leaf nodes, each with another name."""
    found: dict[str, LeafUser] = {}
    for item in array(node):
        user = make(LeafUser, USER.read(item, reading, "a user"))
        if not user.name:
            raise item.error("a user entry requires a user", 'add "user"')
        if user.name in found:
            raise item.error(
                f"duplicate user {user.name!r} detected in leafnode authorization",
                "remove one of them",
            )
        found[user.name] = user
    return tuple(found.values())


def remotes(node: ConfigNode, reading: Reading) -> tuple[LeafRemote, ...]:
    """Hubs that are dialed, no two of them alike."""
    made: list[LeafRemote] = []
    names: set[object] = set()
    for item in array(node):
        found = REMOTE.read(item, reading, "remotes")
        given = found.pop("given", ())
        urls = given if isinstance(given, tuple) else ()
        proxy = found.pop("proxy", None)
        if found.get("credentials") and found.get("nkey"):
            raise item.error("remote leafnode can not have both creds and nkey defined", "keep one")
        web = {urlsplit(url).scheme.lower() in WEB_SCHEMES for url in urls}
        if len(web) > 1:
            raise item.error(
                "remote leaf node configuration cannot have a mix of websocket and non-websocket"
                " urls",
                "make two remotes of it",
            )
        _through_proxy(item, found, proxy, urls)
        remote = make(LeafRemote, found | {"urls": _dialed(item, reading, urls)})
        if remote.identity in names:
            raise item.error("duplicate remote", "remove one of them")
        names.add(remote.identity)
        made.append(remote)
    return tuple(made)


def _dialed(item: ConfigNode, reading: Reading, urls: tuple[str, ...]) -> tuple[LeafUrl, ...]:
    if not urls:
        reading.warnings.append(f"{item.place}: a remote without urls is dialed nowhere")
    elif urlsplit(urls[0]).scheme.lower() in WEB_SCHEMES:
        reading.no_effect(item, "a remote", "hubs are not dialed over websockets")
        return ()
    return tuple(map(_url, urls))


def _url(value: str) -> LeafUrl:
    """A URL that `remote_url` has read."""
    parts = urlsplit(value if "://" in value else f"nats-leaf://{value}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    port_ = parts.port or LEAFNODE_PORT
    return LeafUrl(parts.hostname or "", port_, user, password, parts.scheme)


def _through_proxy(item: ConfigNode, found: Found, wanted: object, urls: tuple[str, ...]) -> None:
    secure = any(urlsplit(url).scheme == "wss" for url in urls)
    if not isinstance(wanted, dict) or not wanted.get("url"):
        return
    if secure and not found.get("tls"):
        raise item.error(
            "proxy is configured but the remote URL requires TLS and no TLS configuration is"
            " provided",
            "add a tls block to the remote",
        )


def proxy(node: ConfigNode, reading: Reading) -> Found:
    """An HTTP proxy on the way to a hub; only websockets go through one."""
    found = PROXY.read(node, reading, "proxy")
    reading.no_effect(node, '"proxy"', "only websockets go through it")
    url = str(found.get("url", ""))
    if not url:
        return found
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise node.error("proxy URL scheme must be http or https", "write http://host:port")
    if not parts.netloc:
        raise node.error("proxy URL must specify a host", "write http://host:port")
    if bool(found.get("username")) != bool(found.get("password")):
        raise node.error(
            "proxy username and password must both be specified or both be empty", "add the other"
        )
    return found


def migration(node: ConfigNode, reading: Reading) -> None:
    """Whether leaders leave, or after how long."""
    if isinstance(node.content, dict):
        delay = node.content.get("leader_migrate_delay")
        if delay is not None:
            duration(delay, reading)
    elif not isinstance(node.content, bool):
        raise wrong_kind(node, "a boolean or a map { leader_migrate_delay }", "write true or false")
    reading.no_effect(
        node, '"jetstream_cluster_migrate"', "leaders stay where they are while the hub is away"
    )


def remote_urls(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """One of those, or an array of them, each once."""
    if isinstance(node.content, list):
        return tuple(dict.fromkeys(_remote_url(item, reading) for item in node.content))
    return (_remote_url(node, reading),)


def _remote_url(node: ConfigNode, reading: Reading) -> str:
    value = remote_url(node, reading)
    if not urlsplit(value if "://" in value else f"nats-leaf://{value}").hostname:
        raise node.error("error parsing url: it names no host", "write nats://host:7422")
    return value


def min_version(node: ConfigNode, reading: Reading) -> str:
    """The least that a leaf node has to be."""
    value = text(node, reading)
    found = VERSION.fullmatch(value)
    if found is None:
        raise node.error(f"invalid leafnode's minimum version: {value!r}", 'write "2.8.0" or more')
    if tuple(map(int, found.groups())) < VERSION_MIN:
        raise node.error("the minimum version should be at least 2.8.0", 'write "2.8.0" or more')
    return value


def public_key(node: ConfigNode, reading: Reading) -> str:
    """The public nkey of a user."""
    value = text(node, reading)
    if decode(value, KeyKind.USER) is None:
        raise node.error(
            "not a valid public nkey for leafnode authorization",
            "it begins with U and has 56 characters",
        )
    return value


def local_account(what: str) -> Reader:
    """A reader of an account that the file has to have."""

    def read(node: ConfigNode, reading: Reading) -> str:
        name = text(node, reading)

        def look(options: Options) -> ConfigError | None:
            known = {account.name for account in options.accounts} | {GLOBAL_ACCOUNT, ""}
            if options.has_system_account:
                known.add(options.system_account or SYSTEM_ACCOUNT)
            if name in known:
                return None
            return node.error(
                f"cannot find local account {name!r} specified in leafnode {what}",
                "add it to the accounts block, or correct its name",
            )

        reading.later.append(look)
        return name

    return read


def denied(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """Subjects that do not pass."""
    return subjects(node, reading, queues=False)


CREDENTIALS = (Field(("password", "pass"), "password", secret),)
USER = Section(
    Field(("user", "username"), "name", text),
    *CREDENTIALS,
    Field(("account",), "account", local_account("authorization")),
    Field(("proxy_required",), "", proxy_required),
    once=True,
)
AUTHORIZATION = Section(
    Field(("user", "username"), "user", login_word),
    *CREDENTIALS,
    Field(("nkey",), "nkey", public_key),
    Field(("timeout",), "timeout_ns", login_time),
    Field(("users",), "users", users),
    Field(("account",), "account", local_account("authorization")),
    Field(("proxy_required",), "", proxy_required),
    once=True,
)
PROXY = Section(
    Field(("url",), "url", remote_url),
    Field(("username",), "username", text),
    Field(("password",), "password", text),
    Field(("timeout",), "timeout", not_negative),
)
ONLY_WEB = "hubs are not dialed over websockets"
REMOTE = Section(
    Field(("no_randomize", "dont_randomize"), "no_randomize", boolean),
    Field(("url", "urls"), "given", remote_urls),
    Field(("account", "local"), "account", local_account("remote")),
    Field(("credentials", "creds"), "credentials", text),
    Field(("nkey", "seed"), "nkey", user_seed("remote leafnode nkey")),
    Field(("tls",), "tls", tls),
    Field(("hub",), "hub", boolean),
    Field(("deny_imports", "deny_import"), "deny_imports", denied),
    Field(("deny_exports", "deny_export"), "deny_exports", denied),
    unused(
        "ws_compression",
        "ws_compress",
        "websocket_compress",
        "websocket_compression",
        read=boolean,
        why=ONLY_WEB,
    ),
    unused("ws_no_masking", "websocket_no_masking", read=boolean, why=ONLY_WEB),
    Field(("jetstream_cluster_migrate", "js_cluster_migrate"), "", migration),
    Field(("isolate_leafnode_interest", "isolate"), "isolated", boolean),
    Field(("request_isolation",), "request_isolation", boolean),
    Field(("compression",), "compression", compression(AUTO)),
    Field(("first_info_timeout",), "first_info_ns", positive(SECOND_NS)),
    Field(("dial_timeout",), "dial_timeout_ns", positive(0)),
    Field(("disabled",), "disabled", boolean),
    Field(("proxy",), "proxy", proxy),
    Field(("ignore_discovered_servers",), "ignore_discovered", boolean),
    once=frozenset({"account", "credentials", "nkey", "tls", "deny_imports", "deny_exports"}),
)
LEAFNODES = Section(
    Field(("listen",), "listen", listen),
    Field(("port",), "port", port),
    Field(("host", "net"), "host", text),
    Field(("authorization",), "login", authorization),
    Field(("remotes",), "remotes", remotes),
    Field(
        ("reconnect", "reconnect_delay", "reconnect_interval"), "reconnect_ns", positive(SECOND_NS)
    ),
    Field(("dial_timeout",), "dial_timeout_ns", positive(SECOND_NS)),
    Field(("tls",), "tls", tls),
    Field(("advertise", "leafnode_advertise"), "advertise", text),
    Field(("no_advertise",), "no_advertise", boolean),
    Field(("min_version", "minimum_version"), "min_version", min_version),
    Field(("compression",), "compression", compression(AUTO)),
    Field(("isolate_leafnode_interest", "isolate"), "isolated", boolean),
    Field(("write_deadline",), "write_deadline_ns", positive(0)),
    Field(("write_timeout",), "write_timeout", write_timeout),
    once=frozenset({"login", "tls"}),
)
