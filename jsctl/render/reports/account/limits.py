"""JetStream use and limits of an account, as info screens show them."""

from jsctl.api.account import AccountInfo, AccountLimits, AccountTier
from jsctl.render.details import Details
from jsctl.render.humanize import limit, number, size


def account_screen(info: AccountInfo) -> Details:
    """The whole JetStream part."""
    screen = Details("JetStream Account Information")
    add_usage(screen, info)
    add_limits(screen, info)
    return screen


def add_usage(screen: Details, info: AccountInfo) -> None:
    """What is used."""
    screen.section("Account Usage")
    screen.row_if("Domain", info.domain)
    screen.row("Storage", size(info.storage))
    screen.row("Memory", size(info.memory))
    screen.row("Streams", number(info.streams))
    screen.row("Consumers", number(info.consumers))
    screen.row("API Level", info.api.level)
    screen.row("API Requests", number(info.api.total))
    screen.row("API Errors", number(info.api.errors))


def add_limits(screen: Details, info: AccountInfo) -> None:
    """What is allowed, tier by tier."""
    if not info.tiers:
        whole = AccountTier(
            memory=info.memory,
            storage=info.storage,
            reserved_memory=info.reserved_memory,
            reserved_storage=info.reserved_storage,
            streams=info.streams,
            consumers=info.consumers,
            limits=info.limits,
        )
        _add_tier(screen, "Default", whole)
    for name in sorted(info.tiers):
        _add_tier(screen, name, info.tiers[name])


def _add_tier(screen: Details, name: str, tier: AccountTier) -> None:
    limits: AccountLimits = tier.limits
    screen.section(f"Tier: {name}")
    screen.row("Stream Requires Max Bytes Set", limits.max_bytes_required)
    screen.row("Consumer Maximum Ack Pending", limit(limits.max_ack_pending))
    screen.row("Memory", _use(tier.memory, limits.max_memory, tier.reserved_memory))
    screen.row("Memory Per Stream", _bytes(limits.memory_max_stream_bytes))
    screen.row("Storage", _use(tier.storage, limits.max_storage, tier.reserved_storage))
    screen.row("Storage Per Stream", _bytes(limits.storage_max_stream_bytes))
    screen.row("Streams", f"{number(tier.streams)} of {limit(limits.max_streams).title()}")
    most = limit(limits.max_consumers)
    screen.row("Consumers", most.title() if most == "unlimited" else f"Maximum {most} per stream")


def _bytes(limit_bytes: int) -> str:
    return "Unlimited" if limit_bytes <= 0 else size(limit_bytes)


def _use(used: int, most: int, reserved: int) -> str:
    text = f"{size(used)} of {'Unlimited' if most < 0 else size(most)}"
    return f"{text} ({size(reserved)} reserved)" if 0 < reserved < 2**63 else text
