"""`/gatewayz`: connections to and from other clusters."""

from collections.abc import Iterator

from jsctl.api.monitoring.connz import (
    AccountGatewayz,
    ConnzOptions,
    Gatewayz,
    GatewayzOptions,
    RemoteGatewayz,
    SubDetail,
)
from jsctl.api.times import format_time
from jsctl.broker.system.monitoring.connections import conn_info
from jsctl.broker.system.monitoring.view import GateFacts, ServerView
from jsctl.dataclass import replace

INTEREST_ONLY = "Interest-Only"
THRESHOLD = 1000
"""Behind so many subjects without interest nats-server would tell all interest; here that is told
from the start."""


def gatewayz(view: ServerView, options: GatewayzOptions) -> Gatewayz:
    """Connections by cluster; what is listened to over there only on request."""
    block, now = view.settings.gateway, format_time(view.now_ns)
    if not block.name:
        return Gatewayz(server_id=view.settings.server_id, now=now)
    outbound: dict[str, RemoteGatewayz] = {}
    inbound: dict[str, tuple[RemoteGatewayz, ...]] = {}
    for gate in view.gateways(interest=options.accounts or bool(options.account_name)):
        if options.name and gate.gateway != options.name:
            continue
        row = RemoteGatewayz(
            configured=gate.outbound and gate.configured,
            connection=conn_info(view, gate.connection, ConnzOptions()),
            accounts=tuple(_accounts(gate, options)),
        )
        if gate.outbound:
            outbound[gate.gateway] = row
        else:
            inbound[gate.gateway] = (*inbound.get(gate.gateway, ()), row)
    return Gatewayz(
        server_id=view.settings.server_id,
        now=now,
        name=block.name,
        host=view.settings.gateway_at[0],
        port=view.settings.gateway_at[1],
        outbound_gateways=None if options.name and not outbound else outbound,
        inbound_gateways=inbound,
    )


def _accounts(gate: GateFacts, options: GatewayzOptions) -> Iterator[AccountGatewayz]:
    if not (options.accounts or options.account_name):
        return
    for name, subs in gate.accounts.items():
        if options.account_name and name != options.account_name:
            continue
        detailed = options.subscriptions_detail and not options.subscriptions
        yield AccountGatewayz(
            name=name,
            interest_mode=INTEREST_ONLY,
            interest_only_threshold=THRESHOLD,
            num_subs=len(subs),
            num_queue_subs=gate.queue_subscriptions.get(name, 0),
            subscriptions_list=tuple(sub.subject for sub in subs) if options.subscriptions else (),
            subscriptions_list_detail=tuple(map(_unnamed, subs)) if detailed else (),
        )


def _unnamed(sub: SubDetail) -> SubDetail:
    """Without the account, which stands above the list."""
    return replace(sub, account="", account_tag="")
