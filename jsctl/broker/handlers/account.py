"""INFO: limits and use of the asking account."""

from jsctl.api.account import AccountInfo, AccountLimits, ApiStats
from jsctl.api.codec import dumps
from jsctl.api.errors import api_error
from jsctl.api.responses import AccountInfoResponse
from jsctl.api.words import Storage
from jsctl.broker.handlers.answers import head
from jsctl.broker.handlers.decisions import Decision, Reply
from jsctl.broker.handlers.view import AccountQuota, View
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.options import COMPATIBLE_API_LEVEL


def info(view: View, request: ApiRequest, _: tuple[str, ...]) -> Decision:
    """INFO"""
    facts = view.account(request.account)
    if facts is None or not facts.enabled:
        raise api_error("JSNotEnabledForAccountErr")
    response = AccountInfoResponse(head=head("account_info"), info=account_info(view, facts))
    return Reply(dumps(response))


def account_info(view: View, facts: AccountQuota) -> AccountInfo:
    """Limits and use, counted from what is assigned and what the servers report.

    What is reserved is told once for each stream, however many replicas it has; limits count all.
    """
    streams, usage = view.meta.streams(facts.name).values(), view.account_usage(facts.name)
    in_memory, on_disk = 0, 0
    for made in streams:
        if made.config.max_bytes > 0:
            if made.config.storage is Storage.MEMORY:
                in_memory += made.config.max_bytes
            else:
                on_disk += made.config.max_bytes
    return AccountInfo(
        memory=usage.memory_bytes,
        storage=usage.store_bytes,
        reserved_memory=in_memory,
        reserved_storage=on_disk,
        streams=len(streams),
        consumers=view.meta.consumer_total(facts.name),
        limits=AccountLimits(
            max_memory=facts.memory_max,
            max_storage=facts.store_max,
            max_streams=facts.streams_max,
            max_consumers=facts.consumers_max,
            max_ack_pending=facts.ack_pending_max,
            memory_max_stream_bytes=facts.memory_stream_bytes_max,
            storage_max_stream_bytes=facts.store_stream_bytes_max,
            max_bytes_required=facts.bytes_required,
        ),
        domain=view.domain,
        api=ApiStats(level=COMPATIBLE_API_LEVEL, total=usage.api_total, errors=usage.api_errors),
    )
