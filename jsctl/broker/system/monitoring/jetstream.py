"""`/jsz`, `/raftz`, `/ipqueuesz`."""

from collections.abc import Sequence

from jsctl.api.account import ApiStats
from jsctl.api.monitoring.health import (
    IpqueueszOptions,
    IpqueueszStatusIPQ,
    RaftzGroup,
    RaftzOptions,
)
from jsctl.api.monitoring.jsz import (
    AccountDetail,
    JetStreamConfig,
    JetStreamStats,
    Jsz,
    JSzOptions,
    RaftGroupDetail,
    StreamDetail,
)
from jsctl.api.times import format_time
from jsctl.broker.system.monitoring.view import JsAccountFacts, ServerView, StreamFacts
from jsctl.broker.system.monitoring.words import Absent, NotMine, Refused, page, unsigned
from jsctl.dataclass import replace

ACCOUNTS_LISTED = 1024


def jsz(view: ServerView, options: JSzOptions) -> Jsz:
    """JetStream of this server: use, limits, meta group, and on request all assets."""
    facts = view.jetstream()
    if facts is None:
        if options.leader_only:
            raise NotMine("not leader")
        return Jsz(
            server_id=view.settings.server_id,
            now=format_time(view.now_ns),
            disabled=True,
            config=JetStreamConfig(),
        )
    if options.leader_only and not facts.leads_meta:
        raise NotMine("not leader")
    streams = [stream for account in facts.accounts for stream in account.streams]
    return Jsz(
        stats=facts.stats,
        server_id=view.settings.server_id,
        now=format_time(view.now_ns),
        config=facts.config,
        limits=facts.limits,
        streams=len(streams),
        streams_leader=sum(stream.leads for stream in streams) if options.raft else 0,
        consumers=sum(stream.consumers for stream in streams),
        consumers_leader=sum(s.consumers_led for s in streams) if options.raft else 0,
        messages=sum(stream.messages for stream in streams),
        bytes=sum(stream.bytes for stream in streams),
        meta_cluster=facts.meta,
        account_details=tuple(
            _account_detail(view, account, options)
            for account in _selected(facts.accounts, options)
        ),
        total=len(facts.accounts),
        scrub=facts.scrub,
    )


def jsz_account(view: ServerView, options: JSzOptions) -> AccountDetail:
    """JetStream of one account, as `$SYS.REQ.ACCOUNT.<account>.JSZ` answers it."""
    facts = view.jetstream()
    if facts is None:
        raise Refused("jetstream not enabled")
    for account in facts.accounts:
        if account.name == options.account:
            return _account_detail(view, account, options)
    if any(account.name == options.account for account in view.accounts()):
        raise Refused(f'account "{options.account}" not jetstream enabled')
    raise Refused(f'account "{options.account}" not found')


def _selected(accounts: Sequence[JsAccountFacts], options: JSzOptions) -> Sequence[JsAccountFacts]:
    if options.account:
        found = [account for account in accounts if account.name == options.account]
        if found:
            return found
    elif options.accounts or options.streams or options.consumer:
        return _page_of(accounts, options)
    return _page_of(accounts, options) if options.accounts else ()


def _page_of(accounts: Sequence[JsAccountFacts], options: JSzOptions) -> Sequence[JsAccountFacts]:
    if options.limit < 0:
        return accounts
    by_name = sorted(accounts, key=lambda account: account.name)
    return page(by_name, options.offset, options.limit or ACCOUNTS_LISTED)


def _account_detail(
    view: ServerView, account: JsAccountFacts, options: JSzOptions
) -> AccountDetail:
    streams: Sequence[StreamFacts] = ()
    if options.streams or options.consumer:
        streams = account.streams
    details = [
        _stream_detail(view, account.name, stream, options)
        for stream in streams
        if stream.leads or not options.stream_leader_only
    ]
    return AccountDetail(
        name=account.tag or account.name,
        id=account.name,
        stats=JetStreamStats(
            memory=account.memory,
            storage=account.store,
            reserved_memory=unsigned(account.memory_reserved),
            reserved_storage=unsigned(account.store_reserved),
            api=ApiStats(total=account.api_total, errors=account.api_errors),
        ),
        stream_detail=tuple(detail for detail in details if detail is not None),
    )


def _stream_detail(
    view: ServerView, account: str, stream: StreamFacts, options: JSzOptions
) -> StreamDetail | None:
    info = view.stream_info(account, stream.name)
    if info is None:
        return None
    replicas = view.consumers(account, stream.name) if options.consumer else ()
    shown = [
        one if options.config else replace(one, info=replace(one.info, config=None))
        for one in replicas
    ]
    public = [one for one in shown if not one.direct]
    return StreamDetail(
        name=stream.name,
        created=info.created,
        cluster=info.cluster,
        config=info.config if options.config else None,
        state=info.state,
        consumer_detail=tuple(one.info for one in public),
        direct_consumer_detail=(
            tuple(one.info for one in shown if one.direct) if options.direct_consumer else ()
        ),
        mirror=info.mirror,
        sources=info.sources,
        damage=info.damage,
        stream_raft_group=stream.raft_group if options.raft else "",
        consumer_raft_groups=(
            tuple(
                RaftGroupDetail(name=one.info.name, raft_group=one.raft_group)
                for one in public
                if one.raft_group
            )
            if options.raft
            else ()
        ),
    )


def raftz(view: ServerView, options: RaftzOptions) -> dict[str, dict[str, RaftzGroup]]:
    """Raft groups by account and name; the system account's unless another is named."""
    groups = view.raft_groups()
    if groups is None:
        raise Absent("No Raft nodes registered")
    account = options.account or view.settings.system_account
    found = {
        name: group
        for owner, name, group in sorted(groups, key=lambda entry: entry[:2])
        if owner == account and options.group in ("", name)
    }
    return {account: found} if found else {}


def ipqueuesz(view: ServerView, options: IpqueueszOptions) -> dict[str, IpqueueszStatusIPQ]:
    """Internal queues: those with something in them, or all."""
    return {
        name: IpqueueszStatusIPQ(pending=pending, in_progress=in_progress)
        for name, (pending, in_progress) in sorted(view.queues().items())
        if (options.all or pending or in_progress) and options.filter in name
    }
