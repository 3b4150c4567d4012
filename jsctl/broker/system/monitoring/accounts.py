"""`/accountz`, `/accstatz` and the account services of `$SYS.REQ.ACCOUNT`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jsctl.api.fields import Json
from jsctl.api.monitoring.accountz import (
    AccountDetailz,
    AccountStat,
    AccountStatz,
    AccountStatzOptions,
    Accountz,
    AccountzOptions,
)
from jsctl.api.server import DataStats, MsgBytes
from jsctl.api.times import format_time
from jsctl.broker import lazy
from jsctl.broker.accounts.imports import Wiring
from jsctl.broker.options import ExportOptions, ImportOptions, MappingOptions
from jsctl.broker.system.monitoring.view import AccountFacts, ServerView
from jsctl.broker.system.monitoring.words import Refused

if TYPE_CHECKING:
    from jsctl.broker.claims import telling
else:
    telling = lazy.module("jsctl.broker.claims.telling", optional=True)

# (service of the system account, name in the importing account, told who asks)
_SYSTEM_SERVICES = (
    ("$SYS.REQ.ACCOUNT.{}.CONNZ", "$SYS.REQ.ACCOUNT.PING.CONNZ", False),
    ("$SYS.REQ.ACCOUNT.{}.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ", False),
    ("$SYS.REQ.ACCOUNT.{}.STATZ", "$SYS.REQ.ACCOUNT.PING.STATZ", False),
    ("$SYS.REQ.USER.{}.INFO", "$SYS.REQ.USER.INFO", True),
)
_USER_INFO = _SYSTEM_SERVICES[-1]
"""The one that the system account takes itself."""
# (what the system account offers, how it answers)
_SYSTEM_EXPORTS = (
    ("$SYS.DEBUG.SUBSCRIBERS", "Singleton"),
    ("$SYS.REQ.ACCOUNT.*.CONNZ", "Streamed"),
    ("$SYS.REQ.ACCOUNT.*.STATZ", "Streamed"),
    ("$SYS.REQ.USER.*.INFO", "Singleton"),
)
_JETSTREAM_EXPORT = ("$JS.API.>", "Singleton")
_RESPONSE_TYPES = {"singleton": "Singleton", "stream": "Streamed", "chunked": "Chunked"}
_JETSTREAM_SERVICE = ("$JS.API.>", "$JS.API.>", True)


def accountz(view: ServerView, options: AccountzOptions) -> Accountz:
    """Names of all accounts, or all about one."""
    detail = account_detail(view, options.account) if options.account else None
    return Accountz(
        server_id=view.settings.server_id,
        now=format_time(view.now_ns),
        system_account=view.settings.system_account,
        accounts=() if detail else tuple(account.name for account in view.accounts()),
        account_detail=detail,
    )


def account_detail(view: ServerView, name: str) -> AccountDetailz:
    """All about one account. Raises Refused when it is not known."""
    account = view.account(name)
    if account is None:
        raise Refused(f"Account {name} does not exist")
    system = name == view.settings.system_account
    given, imports = view.account_options(name), view.imports(name)
    detail = AccountDetailz(
        account_name=name,
        update_time=format_time(account.updated_ns),
        is_system=system,
        expired=account.expired,
        complete=not account.lacks_jetstream
        and (given.claims is None or given.claims.imports == len(imports)),
        jetstream_enabled=account.jetstream,
        leafnode_connections=account.leafs,
        client_connections=account.clients,
        subscriptions=account.subscriptions,
        mappings={one.source: _targets(one) for one in given.mappings} or None,
        exports=(
            *map(_export, given.exports),
            *(_system_exports(view) if system else ()),
        ),
        imports=(
            *map(_import, imports),
            *_system_imports(view, name, system=system),
        ),
        jwt=account.jwt,
        issuer_key=account.issuer_key,
        name_tag=account.tag or name,
        tags=account.tags,
        sublist_stats=view.sublist_stats(name),
    )
    if given.claims is None:
        return detail
    return telling.with_claims(detail, given.claims, view.now_ns)


def accstatz(view: ServerView, options: AccountStatzOptions) -> AccountStatz:
    """Connections and traffic by account; unused accounts only on request."""
    return AccountStatz(
        server_id=view.settings.server_id,
        now=format_time(view.now_ns),
        account_statz=tuple(
            account_stat(account)
            for account in _asked_for(view, set(options.accounts))
            if options.include_unused or account.clients or account.leafs
        ),
    )


def _asked_for(view: ServerView, names: set[str]) -> Iterable[AccountFacts]:
    """The accounts with these names; all if there are none. Other servers ask for one at a time,
    and for each that there is."""
    if len(names) == 1:
        return filter(None, map(view.account, names))
    return [account for account in view.accounts() if not names or account.name in names]


def account_stat(account: AccountFacts) -> AccountStat:
    """Connections and traffic of one account."""
    return AccountStat(
        acc=account.name,
        name=account.tag or account.name,
        conns=account.clients,
        leafnodes=account.leafs,
        total_conns=account.clients + account.leafs,
        num_subscriptions=account.subscriptions,
        sent=_whole(account.sent),
        received=_whole(account.received),
        slow_consumers=account.slow_consumers,
    )


def _whole(stats: DataStats) -> DataStats:
    """With the parts by kind of connection, which are shown even when nothing went there."""
    nothing = MsgBytes()
    return DataStats(
        msgs=stats.msgs,
        bytes=stats.bytes,
        gateways=stats.gateways or nothing,
        routes=stats.routes or nothing,
        leafs=stats.leafs or nothing,
    )


def _targets(mapping: MappingOptions) -> Json:
    """Where a mapping leads, with the weights of the configuration."""
    found: list[Json] = []
    for one in mapping.targets:
        target: dict[str, Json] = {"subject": one.destination, "weight": one.weight}
        found.append(target | ({"cluster": one.cluster} if one.cluster else {}))
    return found


def _export(export: ExportOptions) -> Json:
    found: dict[str, Json] = {"subject": export.subject, "type": _kind(export)}
    if export.service:
        found["response_type"] = _RESPONSE_TYPES[export.response_type]
    if export.latency_subject:
        found["service_latency"] = _latency(export)
    if export.accounts:
        found["approved_accounts"] = list(export.accounts)
    return found


def _latency(export: ExportOptions) -> Json:
    # Of none in a hundred are those that a header asks for.
    sampling = export.latency_sampling or "headers"
    return {"sampling": sampling, "results": export.latency_subject}


def _import(wiring: Wiring) -> Json:
    wanted, export = wiring.wanted, wiring.export
    local = wanted.to or wanted.subject
    if wanted.prefix:
        local = f"{wanted.prefix.rstrip('.')}.{wanted.subject}"
    return {
        "subject": wanted.subject,
        "account": wanted.account,
        **({"to": local} if wanted.service else {}),
        "local_subject": local,
        "type": _kind(wanted),
        "invalid": False,
        "share": wanted.share,
        "tracking": False,
        **({"latency": _latency(export)} if wanted.service and export.latency_subject else {}),
    }


def _kind(crossing: ExportOptions | ImportOptions) -> str:
    return "service" if crossing.service else "stream"


def _system_exports(view: ServerView) -> list[Json]:
    services = list(_SYSTEM_EXPORTS)
    if view.settings.jetstream:
        services.append(_JETSTREAM_EXPORT)
    return [
        {"subject": subject, "type": "service", "response_type": answers}
        for subject, answers in services
    ]


def _system_imports(view: ServerView, name: str, *, system: bool) -> list[Json]:
    services = [_USER_INFO] if system else list(_SYSTEM_SERVICES)
    if view.settings.jetstream and not system:
        services.append(_JETSTREAM_SERVICE)
    return [
        {
            "subject": subject.format(name),
            "account": view.settings.system_account,
            "to": local,
            "local_subject": local,
            "type": "service",
            "invalid": False,
            "share": share,
            "tracking": False,
        }
        for subject, local, share in services
    ]
