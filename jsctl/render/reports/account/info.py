"""Who a connection is, what it may do, and JetStream of its account: `account info`."""

from collections.abc import Sequence
from dataclasses import field

from jsctl.api.account import AccountInfo, AccountTier
from jsctl.dataclass import dataclass
from jsctl.render.details import Details
from jsctl.render.humanize import duration, limit, number, size

DENIED = "Deny"
ALLOWED = "Allow"
TIER_INDENT = 2
LIMITS_INDENT = 6
PROBLEM_INDENT = 2
PERMISSIONS_INDENT = 2


@dataclass(frozen=True, slots=True)
class ConnectionRows:
    """The connection's own rows, ready to be shown; `tls` is empty without TLS."""

    user: str
    account: str
    system_account: bool
    expires: str
    client_id: int
    client_ip: str
    rtt_ns: int
    headers: bool
    max_payload: int
    cluster: str
    url: str
    address: str
    server_id: str
    server_version: str
    server_name: str
    tls: str = ""
    publish: dict[str, Sequence[str]] = field(default_factory=dict)
    subscribe: dict[str, Sequence[str]] = field(default_factory=dict)


def account_info_screen(
    rows: ConnectionRows, info: AccountInfo | None, problem: str = ""
) -> Details:
    """The whole screen; `problem` says why there is nothing about JetStream."""
    screen = Details("Account Information")
    if rows.user or rows.account:  # the server may not have told
        screen.row("User", rows.user)
        screen.row("Account", rows.account)
        screen.row("System Account", rows.system_account)
        screen.row("Expires", rows.expires)
    screen.row("Client ID", rows.client_id)
    screen.row_if("Client IP", rows.client_ip)
    screen.row("RTT", duration(rows.rtt_ns))
    screen.row("Headers Supported", rows.headers)
    screen.row("Maximum Payload", size(rows.max_payload))
    screen.row_if("Connected Cluster", rows.cluster)
    screen.row("Connected URL", rows.url)
    screen.row("Connected Address", rows.address)
    screen.row("Connected Server ID", rows.server_id)
    screen.row("Connected Server Version", rows.server_version)
    screen.row("Connected Server Name", rows.server_name)
    screen.row("TLS Version" if rows.tls else "TLS Connection", rows.tls or "no")
    _add_permissions(screen, rows)
    if info is None:
        screen.indent(PROBLEM_INDENT)
        screen.text()
        screen.text(problem)
        return screen
    domain = f" for domain {info.domain}" if info.domain else ""
    screen.section(f"JetStream Account Information{domain}", parent=True)
    _add_jetstream(screen, info, rows.max_payload)
    return screen


def _add_permissions(screen: Details, rows: ConnectionRows) -> None:
    several = {"Publish": rows.publish, "Subscribe": rows.subscribe}
    if not any(any(rules.values()) for rules in several.values()):
        return
    screen.section("Connection Permissions", parent=True)
    for title, rules in several.items():
        if any(rules.values()):
            screen.lead(f"{title}:", indent=PERMISSIONS_INDENT)
            screen.rows(ALLOWED, sorted(rules.get(ALLOWED.lower(), ())))
            if denied := sorted(rules.get(DENIED.lower(), ())):
                screen.text()
                screen.rows(DENIED, denied)
        screen.indent(0)
        screen.text()


def _add_jetstream(screen: Details, info: AccountInfo, max_payload: int) -> None:
    screen.section("Account Usage")
    screen.row_if("Domain", info.domain)
    screen.row("Storage", size(info.storage))
    screen.row("Memory", size(info.memory))
    screen.row("Streams", number(info.streams))
    screen.row("Consumers", number(info.consumers))
    screen.section("Account Limits")
    screen.row("Max Message Payload", size(max_payload))
    whole = AccountTier(
        memory=info.memory,
        storage=info.storage,
        reserved_memory=info.reserved_memory,
        reserved_storage=info.reserved_storage,
        streams=info.streams,
        consumers=info.consumers,
        limits=info.limits,
    )
    for name, tier in sorted(info.tiers.items()) or [("Default", whole)]:
        _add_tier(screen, name, tier)


def _add_tier(screen: Details, name: str, tier: AccountTier) -> None:
    limits = tier.limits
    screen.section(f"Tier: {name}", indent=TIER_INDENT, parent=True)
    screen.section("Configuration Requirements", indent=LIMITS_INDENT)
    screen.row("Stream Requires Max Bytes Set", limits.max_bytes_required)
    screen.row("Consumer Maximum Ack Pending", limit(limits.max_ack_pending, none_from=0).title())
    screen.section("Stream Resource Usage Limits", indent=LIMITS_INDENT)
    screen.row("Memory", _use(tier.memory, limits.max_memory, tier.reserved_memory))
    screen.row("Memory Per Stream", _per_stream(limits.memory_max_stream_bytes))
    screen.row("Storage", _use(tier.storage, limits.max_storage, tier.reserved_storage))
    screen.row("Storage Per Stream", _per_stream(limits.storage_max_stream_bytes))
    screen.row("Streams", f"{number(tier.streams)} of {limit(limits.max_streams).title()}")
    most = limits.max_consumers
    screen.row("Consumers", "Unlimited" if most <= 0 else f"Maximum {number(most)} per stream")


def _per_stream(limit_bytes: int) -> str:
    return "Unlimited" if limit_bytes <= 0 else size(limit_bytes)


def _use(used: int, most: int, reserved: int) -> str:
    text = f"{size(used)} of {'Unlimited' if most < 0 else size(most)}"
    return f"{text} ({size(reserved)} reserved)" if 0 < reserved < 2**63 else text
