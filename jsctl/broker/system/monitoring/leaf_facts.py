"""Leaf nodes and hubs, in the words of monitoring; loaded where there are some."""

from functools import partial

from jsctl.api.monitoring.connz import LeafInfo
from jsctl.api.monitoring.varz import DenyRules, LeafNodeOptsVarz, RemoteLeafOptsVarz
from jsctl.api.times import format_duration
from jsctl.broker.conf.units import host_text
from jsctl.broker.leafnode_options import GLOBAL_ACCOUNT, LeafNodeOptions, LeafRemote
from jsctl.broker.leafnodes.types import LeafFacts
from jsctl.broker.system.monitoring.connection_facts import sub_detail
from jsctl.broker.system.monitoring.view import ConnFacts, ListedConn
from jsctl.broker.tls_options import SECOND_NS

KIND = "Leafnode"
TLS_TIMEOUT_NS = 2 * SECOND_NS


def listed(leaf: LeafFacts) -> ListedConn:
    """A connection among very many."""
    return ListedConn(leaf.leaf_id, partial(conn_facts, leaf), leaf.stopped_ns)


def conn_facts(leaf: LeafFacts) -> ConnFacts:
    """A connection among those of clients."""
    return ConnFacts(
        cid=leaf.leaf_id,
        host=leaf.host,
        port=leaf.port,
        start_ns=leaf.opened_ns,
        last_ns=leaf.last_ns or leaf.opened_ns,
        kind=KIND,
        type="",
        stop_ns=leaf.stopped_ns,
        reason=leaf.reason,
        rtt_ns=leaf.rtt_ns,
        pending_bytes=leaf.pending_bytes,
        in_msgs=leaf.in_msgs,
        out_msgs=leaf.out_msgs,
        in_bytes=leaf.in_bytes,
        out_bytes=leaf.out_bytes,
        subscriptions=leaf.subscription_count,
        # What a hub said of itself is not told here, as in nats-server.
        name="" if leaf.solicited else leaf.name,
        version="" if leaf.solicited else leaf.version,
        user=leaf.user,
        account=leaf.account,
        account_tag=leaf.account_tag,
        jwt=leaf.vouched.token,
        bearer=leaf.vouched.bearer,
        issuer_key=leaf.vouched.issuer,
        tags=leaf.vouched.tags,
        kept_subscriptions=lambda: [sub_detail(sub, of_client=True) for sub in leaf.subscriptions],
    )


def leaf_info(leaf: LeafFacts) -> LeafInfo:
    """A row of `/leafz`."""
    return LeafInfo(
        id=leaf.leaf_id,
        name=leaf.name,
        is_spoke=leaf.spoke,
        is_isolated=leaf.isolated,
        account=leaf.account,
        ip=leaf.host,
        port=leaf.port,
        rtt=format_duration(leaf.rtt_ns),
        in_msgs=leaf.in_msgs,
        out_msgs=leaf.out_msgs,
        in_bytes=leaf.in_bytes,
        out_bytes=leaf.out_bytes,
        subscriptions=leaf.subscription_count,
        subscriptions_list=tuple(sub.subject for sub in leaf.subscriptions),
        compression=leaf.compression,
    )


def options_of(block: LeafNodeOptions, bound: tuple[str, int] | None) -> LeafNodeOptsVarz:
    """The `leaf` part of `/varz`."""
    remotes = tuple(map(_remote, block.remotes))
    if not block.listens:
        return LeafNodeOptsVarz(remotes=remotes)
    host, port = bound or (block.host, block.port)
    tls = block.tls
    return LeafNodeOptsVarz(
        host=host,
        port=port,
        auth_timeout=_seconds(block.login_ns),
        tls_timeout=_seconds(tls.timeout_ns if tls is not None else TLS_TIMEOUT_NS),
        tls_required=tls is not None,
        tls_verify=tls is not None and tls.verify,
        remotes=remotes,
        write_deadline=block.write_deadline_ns,
        write_timeout=block.write_timeout.told,
    )


def _remote(remote: LeafRemote) -> RemoteLeafOptsVarz:
    denied = remote.deny_imports or remote.deny_exports
    return RemoteLeafOptsVarz(
        local_account=remote.account or GLOBAL_ACCOUNT,
        tls_timeout=_seconds(remote.tls.timeout_ns) if remote.tls is not None else 0,
        urls=tuple(host_text(url.host, url.port) for url in remote.urls),
        deny=DenyRules(exports=remote.deny_exports, imports=remote.deny_imports)
        if denied
        else None,
    )


def _seconds(length_ns: int) -> float:
    seconds, rest = divmod(length_ns, SECOND_NS)
    return seconds if not rest else length_ns / SECOND_NS
