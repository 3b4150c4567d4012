"""The blocks `gateway` and `leafnodes`: servers that would come, or be dialed, from elsewhere.

What they say of accounts is checked when the whole file is known: `Reading.later`.
"""

import re
from urllib.parse import urlsplit

from jsctl.broker.conf.absent import (
    ADDRESS,
    CREDENTIALS,
    DIALING_TLS,
    LISTENING_TLS,
    WRITES,
    Found,
    listens,
    not_negative,
    remote_url,
)
from jsctl.broker.conf.blocks import (
    compression_mode,
)
from jsctl.broker.conf.fields import (
    Field,
    Reader,
    Reading,
    Section,
    array,
    boolean,
    duration,
    integer,
    text,
    word,
    wrong_kind,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.users import AUTHORIZATION, login_time, subjects
from jsctl.broker.errors import ConfigError
from jsctl.broker.nkey import KeyKind, decode, is_seed
from jsctl.broker.options import SYSTEM_ACCOUNT, Options

GLOBAL_ACCOUNT = "$G"
LEAF_VERSION = (2, 8, 0)
VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-[\w.]+)?")


def gateway(node: ConfigNode, reading: Reading) -> None:
    """A cluster's door to others."""
    found = GATEWAY.read(node, reading, "gateway")
    named, opened = found.get("name"), listens(found)
    if named and not opened:
        raise node.error(
            f"gateway {named!r} has no port specified (select -1 for random port)", "add port"
        )
    if opened and not named:
        raise node.error("gateway has no name", "add name")
    reading.no_effect(node, '"gateway"', "nothing listens for other clusters, and none is dialed")


def leafnodes(node: ConfigNode, reading: Reading) -> None:
    """Servers that hang on this one, and those that it would hang on."""
    LEAFNODES.read(node, reading, "leafnodes")
    reading.no_effect(node, '"leafnodes"', "nothing listens for leaf nodes, and no hub is dialed")


def gateway_authorization(node: ConfigNode, reading: Reading) -> None:
    """One user and its password."""
    found = AUTHORIZATION.read(node, reading, "gateway authorization")
    if "users" in found:
        raise node.error("Gateway authorization does not allow multiple users", "use user")
    if found.get("token"):
        raise node.error("Gateway authorization does not support tokens", "use user and password")


def remote_gateways(node: ConfigNode, reading: Reading) -> None:
    """Each has a name and somewhere to be."""
    for number, item in enumerate(array(node)):
        found = REMOTE_GATEWAY.read(item, reading, "gateways")
        if not found.get("name"):
            raise item.error(f"gateway in the list {number} has no name", "add it")
        if not (found.get("url") or found.get("urls")):
            raise item.error(f"gateway {found['name']!r} has no URL", "add url")


def leaf_authorization(node: ConfigNode, reading: Reading) -> None:
    """A user, an nkey, or users."""
    found = LEAF_AUTHORIZATION.read(node, reading, "leafnodes authorization")
    for key, what in (("user", "user/pass"), ("nkey", "nkey")):
        if found.get("users") and found.get(key):
            raise node.error(
                f"can not have a single {what} and a users array", "move it into the array"
            )


def leaf_users(node: ConfigNode, reading: Reading) -> int:
    """Users of leaf nodes, each with another name; how many."""
    names: set[object] = set()
    for item in array(node):
        name = LEAF_USER.read(item, reading, "a user").get("user", "")
        if name in names:
            raise item.error(
                f"duplicate user {name!r} detected in leafnode authorization", "remove one of them"
            )
        names.add(name)
    return len(names)


def remote_leafs(node: ConfigNode, reading: Reading) -> None:
    """Hubs that are dialed, no two of them alike."""
    names: set[object] = set()
    for item in array(node):
        found = REMOTE_LEAF.read(item, reading, "remotes")
        urls = found.get("urls")
        urls = urls if isinstance(urls, tuple) else ()
        if found.get("creds") and found.get("nkey"):
            raise item.error("remote leafnode can not have both creds and nkey defined", "keep one")
        web = {urlsplit(url).scheme in ("ws", "wss") for url in urls}
        if len(web) > 1:
            raise item.error(
                "remote leaf node configuration cannot have a mix of websocket and non-websocket"
                " urls",
                "make two remotes of it",
            )
        _through_proxy(item, found, urls)
        account = found.get("account") or GLOBAL_ACCOUNT
        name = (tuple(sorted(urls)), account, found.get("creds") or found.get("nkey"))
        if name in names:
            raise item.error("duplicate remote", "remove one of them")
        names.add(name)


def _through_proxy(item: ConfigNode, found: Found, urls: tuple[str, ...]) -> None:
    wanted = found.get("proxy")
    secure = any(urlsplit(url).scheme == "wss" for url in urls)
    if isinstance(wanted, dict) and wanted.get("url") and secure and not found.get("tls"):
        raise item.error(
            "proxy is configured but the remote URL requires TLS and no TLS configuration is"
            " provided",
            "add a tls block to the remote",
        )


def proxy(node: ConfigNode, reading: Reading) -> Found:
    """An HTTP proxy on the way to a leaf node's hub."""
    found = PROXY.read(node, reading, "proxy")
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


def remote_urls(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """One of those, or an array of them."""
    if isinstance(node.content, list):
        return tuple(remote_url(item, reading) for item in node.content)
    return (remote_url(node, reading),)


def url_array(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """An array of those."""
    return tuple(remote_url(item, reading) for item in array(node))


def leaf_version(node: ConfigNode, reading: Reading) -> str:
    """The least that a leaf node has to be."""
    value = text(node, reading)
    found = VERSION.fullmatch(value)
    if found is None:
        raise node.error(f"invalid leafnode's minimum version: {value!r}", 'write "2.8.0" or more')
    if tuple(map(int, found.groups())) < LEAF_VERSION:
        raise node.error("the minimum version should be at least 2.8.0", 'write "2.8.0" or more')
    return value


def seed(node: ConfigNode, reading: Reading) -> str:
    """The seed of a user's nkey; it is not repeated in errors."""
    value = text(node, reading)
    if not is_seed(value, KeyKind.USER):
        raise node.error("remote leafnode nkey is not a valid seed", "it begins with SU")
    return value


def user_key(node: ConfigNode, reading: Reading) -> str:
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
            if not options.no_system_account:
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


REMOTE_GATEWAY = Section(
    Field(("name",), "name", text),
    Field(("tls",), "", DIALING_TLS),
    Field(("url",), "url", remote_url),
    Field(("urls",), "urls", url_array),
)
GATEWAY = Section(
    *ADDRESS,
    *WRITES,
    Field(("name",), "name", word),
    Field(("authorization",), "", gateway_authorization),
    Field(("tls",), "", DIALING_TLS),
    Field(("advertise",), "", text),
    Field(("connect_retries",), "", integer),
    Field(("connect_backoff",), "", boolean),
    Field(("gateways",), "", remote_gateways),
    Field(("reject_unknown_cluster", "reject_unknown"), "", boolean),
)
LEAF_USER = Section(
    *CREDENTIALS,
    Field(("account",), "", local_account("authorization")),
    Field(("proxy_required",), "", boolean),
    once=True,
)
LEAF_AUTHORIZATION = Section(
    *CREDENTIALS,
    Field(("nkey",), "nkey", user_key),
    Field(("timeout",), "", login_time),
    Field(("users",), "users", leaf_users),
    Field(("account",), "", local_account("authorization")),
    Field(("proxy_required",), "", boolean),
    once=True,
)
PROXY = Section(
    Field(("url",), "url", remote_url),
    Field(("username",), "username", text),
    Field(("password",), "password", text),
    Field(("timeout",), "", not_negative),
)
REMOTE_LEAF = Section(
    Field(("no_randomize", "dont_randomize"), "", boolean),
    Field(("url", "urls"), "urls", remote_urls),
    Field(("account", "local"), "account", local_account("remote")),
    Field(("credentials", "creds"), "creds", text),
    Field(("nkey", "seed"), "nkey", seed),
    Field(("tls",), "tls", LISTENING_TLS),
    Field(("hub",), "", boolean),
    Field(("deny_imports", "deny_import"), "", lambda n, r: subjects(n, r, queues=False)),
    Field(("deny_exports", "deny_export"), "", lambda n, r: subjects(n, r, queues=False)),
    Field(
        ("ws_compression", "ws_compress", "websocket_compress", "websocket_compression"),
        "",
        boolean,
    ),
    Field(("ws_no_masking", "websocket_no_masking"), "", boolean),
    Field(("jetstream_cluster_migrate", "js_cluster_migrate"), "", migration),
    Field(("isolate_leafnode_interest", "isolate"), "", boolean),
    Field(("request_isolation",), "", boolean),
    Field(("compression",), "", compression_mode),
    Field(("first_info_timeout",), "", duration),
    Field(("dial_timeout",), "", duration),
    Field(("disabled",), "", boolean),
    Field(("proxy",), "proxy", proxy),
    Field(("ignore_discovered_servers",), "", boolean),
)
LEAFNODES = Section(
    *ADDRESS,
    *WRITES,
    Field(("authorization",), "", leaf_authorization),
    Field(("remotes",), "", remote_leafs),
    Field(("reconnect", "reconnect_delay", "reconnect_interval"), "", duration),
    Field(("dial_timeout",), "", duration),
    Field(("tls",), "", LISTENING_TLS),
    Field(("advertise", "leafnode_advertise"), "", text),
    Field(("no_advertise",), "", boolean),
    Field(("min_version", "minimum_version"), "", leaf_version),
    Field(("compression",), "", compression_mode),
    Field(("isolate_leafnode_interest", "isolate"), "", boolean),
)
