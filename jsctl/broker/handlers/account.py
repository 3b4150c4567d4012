"""INFO: limits and use of the asking account."""

from collections import Counter
from collections.abc import Iterable

from jsctl.api.account import AccountInfo, AccountLimits, AccountTier, ApiStats
from jsctl.api.codec import dumps
from jsctl.api.errors import api_error
from jsctl.api.responses import AccountInfoResponse
from jsctl.api.words import Storage
from jsctl.broker.handlers.answers import head
from jsctl.broker.handlers.decisions import Decision, Reply
from jsctl.broker.handlers.view import NOTHING_HELD, AccountUsage, HeldBytes, View
from jsctl.broker.jetstream.consumers.config import replicas_of
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.quotas import ALL, AccountQuota, TierLimits, tier_name
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.options import COMPATIBLE_API_LEVEL


def info(view: View, request: ApiRequest, _: tuple[str, ...]) -> Decision:
    """INFO"""
    facts = view.account(request.account)
    if facts is None or not facts.enabled:
        raise api_error("JSNotEnabledForAccountErr")
    response = AccountInfoResponse(head=head("account_info"), info=account_info(view, facts))
    return Reply(dumps(response))


def account_info(view: View, quota: AccountQuota) -> AccountInfo:
    """Limits and use, counted from what is assigned and what the servers report.

    What is reserved is told once for each stream, however many replicas it has; limits of an
    account without tiers count all.
    """
    streams = view.meta.streams(quota.name).values()
    usage, reserved = view.account_usage(quota.name), _reserved(streams)
    return AccountInfo(
        memory=usage.held.memory,
        storage=usage.held.store,
        reserved_memory=reserved.memory,
        reserved_storage=reserved.store,
        streams=len(streams),
        consumers=view.meta.consumer_total(quota.name),
        limits=_limits(quota.tiers.get(ALL)),
        domain=view.domain,
        api=ApiStats(level=COMPATIBLE_API_LEVEL, total=usage.api_total, errors=usage.api_errors),
        tiers=_tiers(view, quota, list(streams), usage) if quota.tiered else {},
    )


def _reserved(streams: Iterable[StreamAssignment]) -> HeldBytes:
    in_memory, on_disk = 0, 0
    for made in streams:
        if made.config.max_bytes > 0:
            if made.config.storage is Storage.MEMORY:
                in_memory += made.config.max_bytes
            else:
                on_disk += made.config.max_bytes
    return HeldBytes(in_memory, on_disk)


def _tiers(
    view: View, quota: AccountQuota, streams: list[StreamAssignment], usage: AccountUsage
) -> dict[str, AccountTier]:
    """Those that the account has, and those that it uses all the same."""
    by_tier: dict[str, list[StreamAssignment]] = {}
    consumers = Counter[str]()
    for made in streams:
        by_tier.setdefault(tier_name(made.config.num_replicas), []).append(made)
        for consumer in view.meta.consumers(quota.name, made.name).values():
            consumers[tier_name(replicas_of(consumer.config, made.config))] += 1
    used = {tier for tier, held in usage.tiers.items() if held != NOTHING_HELD}
    counted = quota.tiers.keys() | used
    found = {}
    for tier in sorted(counted | by_tier.keys() | consumers.keys()):
        some, held = by_tier.get(tier, []), usage.of_tier(tier)
        # A tier that is neither given nor in use tells only how much there is in it.
        reserved = _reserved(some) if tier in counted else NOTHING_HELD
        found[tier] = AccountTier(
            memory=held.memory,
            storage=held.store,
            reserved_memory=reserved.memory,
            reserved_storage=reserved.store,
            streams=len(some),
            consumers=consumers[tier],
            limits=_limits(quota.tiers.get(tier)),
        )
    return found


def _limits(limits: TierLimits | None) -> AccountLimits:
    if limits is None:
        return AccountLimits()
    return AccountLimits(
        max_memory=limits.memory_max,
        max_storage=limits.store_max,
        max_streams=limits.streams_max,
        max_consumers=limits.consumers_max,
        max_ack_pending=limits.ack_pending_max,
        memory_max_stream_bytes=limits.memory_stream_bytes_max,
        storage_max_stream_bytes=limits.store_stream_bytes_max,
        max_bytes_required=limits.bytes_required,
    )
