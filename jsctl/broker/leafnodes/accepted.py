"""Leaf nodes that connect here: who they are, and why one is turned away.

The hub speaks first (INFO with a nonce), the leaf node says who it is (CONNECT), and the hub tells
it by a second INFO which account it belongs to and what it may do. A password that is hashed takes
longer to check than a turn may, so what comes meanwhile waits.
"""

import re

from jsctl.broker.accounts.identity import Check, ClientIdentity, Surroundings
from jsctl.broker.compression_options import AUTO
from jsctl.broker.errors import ProtocolError
from jsctl.broker.interest.kinds import LEAF
from jsctl.broker.leafnodes import wire
from jsctl.broker.leafnodes.connections import LeafConnections
from jsctl.broker.leafnodes.leaf import Leaf, LeafStage
from jsctl.broker.leafnodes.login import identify
from jsctl.broker.leafnodes.types import LeafSettings
from jsctl.broker.leafnodes.wire import LeafConnect
from jsctl.broker.linking import fields
from jsctl.broker.linking.compression import Unpacking
from jsctl.broker.protocol.route import CLUSTER_BYTES_MAX
from jsctl.broker.turn import LogLevel, Verify

VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


def greet(connections: LeafConnections, leaf: Leaf) -> None:
    """Speak first."""
    leaf.nonce = fields.new_nonce(connections.router.jitter)
    urls = connections.own_urls()
    settings = connections.settings
    line = wire.info_line(
        settings,
        urls,
        leaf_id=leaf.leaf_id,
        nonce=leaf.nonce,
        compression=settings.compression.told,
    )
    connections.send(leaf, line)


def info(connections: LeafConnections, leaf: Leaf, body: bytes) -> None:
    """INFO arrived: a leaf node that would compress says so before it says who it is."""
    if leaf.stage is not LeafStage.CONNECT or leaf.agreed:
        return
    try:
        told = wire.parse_info(body)
    except ProtocolError as error:
        connections.refuse(leaf, str(error), "Protocol Violation")
        return
    settings = connections.settings
    if not connections.agree(leaf, settings.compression, told.compression) or not leaf.level:
        return
    leaf.unpacking = Unpacking()
    own = settings.compression
    line = wire.info_line(
        settings,
        connections.own_urls(),
        leaf_id=leaf.leaf_id,
        nonce=leaf.nonce,
        compression=AUTO if own.mode == AUTO else leaf.agreed,
    )
    connections.send(leaf, line)


def connect(connections: LeafConnections, leaf: Leaf, body: bytes) -> None:
    """CONNECT arrived: find out who it is."""
    try:
        said = wire.parse_connect(body)
    except ProtocolError as error:
        connections.refuse(leaf, str(error), "Protocol Violation")
        return
    leaf.said = said
    settings, accounts = connections.settings, connections.router.accounts
    found = identify(
        settings.login, accounts, said.credentials, leaf.nonce, seen(connections, leaf)
    )
    if isinstance(found, Check):
        leaf.stage, leaf.check = LeafStage.PASSWORD, found
        connections.out.verifies.append(Verify(leaf.conn, found.password, found.hashed))
    else:
        _identified(connections, leaf, said, found)


def verified(connections: LeafConnections, leaf: Leaf, ok: bool) -> None:
    """The password was checked."""
    check, leaf.check = leaf.check, None
    if check is not None and leaf.said is not None:
        leaf.stage = LeafStage.CONNECT
        _identified(connections, leaf, leaf.said, check.identity if ok else None)


def checked_again(connections: LeafConnections, leaf: Leaf, check: Check) -> bool:
    """Users have changed while a password is being checked; whether the verdict that comes is on
    the one that counts now."""
    assert leaf.said is not None
    login, accounts = connections.settings.login, connections.router.accounts
    found = identify(login, accounts, leaf.said.credentials, leaf.nonce, seen(connections, leaf))
    if not isinstance(found, Check) or found.hashed != check.hashed:
        return False
    leaf.check = found
    return True


def seen(connections: LeafConnections, leaf: Leaf) -> Surroundings:
    """What counts at a login besides what the leaf node says."""
    return Surroundings(connections.router.now_ns, leaf.host)


def still_vouched(connections: LeafConnections, leaf: Leaf) -> bool:
    """Whether the JWT of a leaf node, if that came with one, still counts, and for how long."""
    if leaf.identity is None or leaf.identity.vouched is None or leaf.said is None:
        return True
    login, accounts = connections.settings.login, connections.router.accounts
    given = leaf.said.credentials
    found = identify(login, accounts, given, leaf.nonce, seen(connections, leaf))
    if not isinstance(found, ClientIdentity) or found.account is not leaf.account:
        return False
    if found.role != leaf.identity.role:
        return False
    leaf.identity = found
    leaf.alive.leaves(found.leaves_ns)
    return True


def _identified(
    connections: LeafConnections, leaf: Leaf, said: LeafConnect, identity: ClientIdentity | None
) -> None:
    if identity is None or connections.is_full(identity.account):
        who = f" - User {said.credentials.shown!r}" if said.credentials.shown else ""
        connections.log(LogLevel.ERROR, leaf, f"authentication error{who}")
        connections.send(leaf, fields.error_line("Authorization Violation"))
        connections.close(leaf, "Authentication Failure")
        return
    leaf.identity, leaf.account = identity, identity.account
    leaf.alive.leaves(identity.leaves_ns)
    reason = _refusal(connections.settings, said)
    if reason is not None:
        if reason[1] == "Minimum Version Required":
            connections.send(leaf, _answer(connections, leaf))
        connections.refuse(leaf, *reason)
        return
    _replace(connections, leaf, said)
    connections.send(leaf, _answer(connections, leaf))
    connections.link(leaf, identity.account, connections.router.now_ns)


def _refusal(settings: LeafSettings, said: LeafConnect) -> tuple[str, str] | None:
    """(text for -ERR, close reason) for a CONNECT of somebody who may log in."""
    if said.lang:
        return "attempted to connect to leaf node port", "Incorrect Port"
    if not fields.is_word(said.cluster):
        return "cluster name cannot contain spaces", "Protocol Violation"
    if len(said.cluster.encode()) > CLUSTER_BYTES_MAX:
        return "cluster name is too long", "Protocol Violation"
    if settings.cluster and said.cluster == settings.cluster:
        return "remote leafnode has same cluster name", "Cluster Names Identical"
    if said.gateway:
        text = f'Rejecting connection from gateway "{said.gateway}" on the leafnode port'
        return text, "Wrong Gateway"
    if settings.min_version and not is_at_least(said.version, settings.min_version):
        text = f'connection rejected since minimum version required is "{settings.min_version}"'
        return text, "Minimum Version Required"
    return None


def is_at_least(version: str, wanted: str) -> bool:
    """Whether a version is no older than another; what is no version is."""
    one, other = VERSION.match(version), VERSION.match(wanted)
    if one is None or other is None:
        return False
    return tuple(map(int, one.groups())) >= tuple(map(int, other.groups()))


def _replace(connections: LeafConnections, leaf: Leaf, said: LeafConnect) -> None:
    """A leaf node that comes again takes the place of its former connection, whose end was not
    noticed here, or which its configuration has twice."""
    assert leaf.account is not None
    if not (said.name and said.account):
        return
    for old in connections.of_account(leaf.account):
        known = old.said
        if known is not None and old.remote is None and _is_same(known, said):
            text = "Duplicate Remote LeafNode Connection"
            connections.refuse(old, text, text)
            connections.log(LogLevel.WARNING, leaf, "Replacing connection from same server")
            return


def _is_same(one: LeafConnect, other: LeafConnect) -> bool:
    """Whether two connections are of the same account of the same server."""
    return (one.name, one.cluster, one.account) == (other.name, other.cluster, other.account)


def _answer(connections: LeafConnections, leaf: Leaf) -> bytes:
    """The INFO that tells which account it is, and what is permitted."""
    assert leaf.account is not None
    rules = leaf.rules
    return wire.info_line(
        connections.settings,
        connections.own_urls(),
        leaf_id=leaf.leaf_id,
        account=leaf.account.name,
        is_system=leaf.account.name == connections.system_account,
        imports=None if rules is None else rules.subscribe,
        exports=None if rules is None else rules.publish,
    )


def tell_again(connections: LeafConnections, leaf: Leaf) -> None:
    """What a leaf node that hangs on this server was told has changed: its URLs, or permissions."""
    if leaf.remote is None and leaf.link is not None and leaf.link.kind is LEAF:
        connections.send(leaf, _answer(connections, leaf))
