"""Hubs that this server has dialed: what it says to them, and what they answer.

A hub speaks first (INFO with a nonce). This server says who it is (CONNECT), and is linked once the
hub has agreed by a second INFO, which tells what is permitted; later ones tell changes of that, and
where else the hub's cluster may be reached.
"""

import base64
import re

from jsctl.broker import nkey
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.compression_options import AUTO
from jsctl.broker.errors import ProtocolError
from jsctl.broker.leafnodes import wire
from jsctl.broker.leafnodes.connections import LeafConnections
from jsctl.broker.leafnodes.leaf import Leaf, LeafStage
from jsctl.broker.leafnodes.remotes import Remote
from jsctl.broker.leafnodes.types import (
    CONFIRM_NS,
    SAME_CLUSTER_DELAY_NS,
    SECOND_NS,
    VERSION_DELAY_NS,
)
from jsctl.broker.leafnodes.wire import LeafInfo
from jsctl.broker.linking import fields
from jsctl.broker.linking.compression import Unpacking
from jsctl.broker.turn import LogLevel

_CREDENTIALS = re.compile(r"-{3,}[^\n]*-{3,}\r?\n\s*([\w\-.=]+)\s*\r?\n-{3,}[^\n]*-{3,}", re.ASCII)
SAME_CLUSTER = "remote leafnode has same cluster name"
MIN_VERSION = "connection rejected since minimum version required is"


def info(connections: LeafConnections, leaf: Leaf, remote: Remote, body: bytes) -> None:
    """INFO arrived."""
    try:
        told = wire.parse_info(body)
    except ProtocolError as error:
        connections.refuse(leaf, str(error), "Protocol Violation")
        return
    if leaf.stage is LeafStage.INFO:
        _first(connections, leaf, remote, told)
        return
    if not remote.options.ignore_discovered and told.leafnode_urls:
        remote.discovered(told.leafnode_urls)
    if told.imports is not None or told.exports is not None:
        leaf.hub_rules = told.imports, told.exports
        if leaf.link is not None:
            leaf.link.guard = leaf.guard()
            connections.routing.permitted(leaf.link)
    if leaf.stage is LeafStage.CONFIRM and told.connect_info:
        _confirmed(connections, leaf, remote, told.remote_account)


def _first(connections: LeafConnections, leaf: Leaf, remote: Remote, told: LeafInfo) -> None:
    if not told.client_id or (told.leafnode_urls is None and not told.info_on_connect):
        connections.log(LogLevel.ERROR, leaf, "attempted to connect to wrong port")
        connections.close(leaf, "Incorrect Port")
        return
    if not fields.is_word(told.cluster):
        text = "cluster name cannot contain spaces"
        connections.refuse(leaf, text, "Protocol Violation")
        return
    account = connections.router.accounts.get(remote.account)
    if account is None:
        text = f"Unable to lookup account {remote.account} for solicited leafnode connection"
        connections.log(LogLevel.ERROR, leaf, text)
        connections.close(leaf, "Missing Account")
        return
    if not leaf.agreed:
        if not connections.agree(leaf, remote.options.compression, told.compression):
            return
        if leaf.level:
            _compress(connections, leaf, remote)
            return
    leaf.told, leaf.nonce, leaf.account = told, told.nonce, account
    if not remote.options.ignore_discovered and told.leafnode_urls:
        remote.discovered(told.leafnode_urls)
    try:
        given = login(remote, leaf.credentials, told.nonce)
    except ValueError as error:
        connections.log(LogLevel.ERROR, leaf, str(error))
        connections.close(leaf, "Write Error")
        return
    _connect(connections, leaf, remote, account, given)


def _compress(connections: LeafConnections, leaf: Leaf, remote: Remote) -> None:
    """Say how; all that follows is compressed, in both directions, and the hub begins anew."""
    own = remote.options.compression
    line = wire.info_line(
        connections.settings,
        connections.own_urls(),
        compression=AUTO if own.mode == AUTO else leaf.agreed,
    )
    connections.send(leaf, line)
    leaf.unpacking = Unpacking()


def _connect(
    connections: LeafConnections,
    leaf: Leaf,
    remote: Remote,
    account: Account,
    given: dict[str, object],
) -> None:
    settings, options = connections.settings, remote.options
    line = wire.connect_line(
        settings,
        given,
        account=account.name,
        deny_pub=options.deny_imports,
        is_hub=options.hub,
        isolate=options.request_isolation,
        jetstream=settings.jetstream,
        compression=leaf.compression,
    )
    connections.send(leaf, line)
    leaf.stage = LeafStage.CONFIRM
    leaf.alive.deadline_ns = connections.router.now_ns + CONFIRM_NS
    assert leaf.told is not None
    if not leaf.told.info_on_connect:
        _confirmed(connections, leaf, remote, "")


def _confirmed(
    connections: LeafConnections, leaf: Leaf, remote: Remote, remote_account: str
) -> None:
    account = leaf.account
    assert account is not None
    if connections.is_full(account):
        connections.turn_away(leaf)
        return
    if leaf.cluster and connections.has_cluster(account, leaf.cluster):
        connections.loop(leaf, tell=True)
        return
    if remote_account:
        connections.routing.remote_accounts[account.name] = remote_account
    remote.attempts, remote.connected_once = 0, True
    connections.link(leaf, account, connections.router.now_ns)


def error(connections: LeafConnections, leaf: Leaf, text: str) -> None:
    """-ERR arrived: the hub closes the connection, and may do so again."""
    connections.log(LogLevel.ERROR, leaf, f"Leafnode Error {text}")
    delays = {SAME_CLUSTER: SAME_CLUSTER_DELAY_NS, MIN_VERSION: VERSION_DELAY_NS}
    if "Loop detected" in text:
        connections.loop(leaf, tell=False)
    for words, delay_ns in delays.items():
        if words in text and leaf.remote is not None:
            leaf.remote.delay_ns = delay_ns
            seconds = delay_ns // SECOND_NS
            line = f"Leafnode connection dropped. Delaying attempt to reconnect for {seconds}s"
            connections.log(LogLevel.ERROR, leaf, line)


def login(remote: Remote, credentials: str, nonce: str) -> dict[str, object]:
    """What CONNECT says of who this server is. Raises ValueError for credentials of no use."""
    found: dict[str, object] = {}
    if remote.options.credentials:
        token, seed = read_credentials(credentials)
        found["jwt"], found["sig"] = token, _signed(seed, nonce)
    elif remote.options.nkey:
        seed = remote.options.nkey
        found["nkey"], found["sig"] = nkey.public_of(seed), _signed(seed, nonce)
    user, password = remote.login()
    if user:
        found["user"], found["pass"] = user, password
        if not password:
            found["auth_token"] = user
    return found


def read_credentials(text: str) -> tuple[str, str]:
    """The JWT and the seed of a credentials file. Raises ValueError when it is none."""
    parts = _CREDENTIALS.findall(text)
    if len(parts) < 2:
        raise ValueError("Credentials file malformed")
    token, seed = parts[0], parts[1]
    if not nkey.is_seed(seed, nkey.KeyKind.USER):
        raise ValueError("Credentials file has malformed seed")
    return token, seed


def _signed(seed: str, nonce: str) -> str:
    raw = nkey.sign(seed, nonce.encode(errors="replace"))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def disappointed(connections: LeafConnections, leaf: Leaf) -> None:
    """The hub did not say what it has to in time."""
    if leaf.stage is LeafStage.CONFIRM:
        connections.send(leaf, fields.error_line("Stale Leaf Node Connection - Closing"))
        connections.close(leaf, "Stale Connection")
    else:
        connections.log(LogLevel.ERROR, leaf, "read error: i/o timeout")
        connections.close(leaf, "Read Error")
