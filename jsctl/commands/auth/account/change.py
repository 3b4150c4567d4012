"""`auth account add` and `edit`: what is given changes, all else stays."""

from collections.abc import Mapping
from dataclasses import replace

from jsctl.auth.claims import NO_LIMIT, Account, JetStreamLimits, OperatorLimits
from jsctl.auth.entities import with_tags
from jsctl.auth.keys import KeyKind, from_text
from jsctl.auth.store import check_name
from jsctl.commands.auth.account.show import show_account
from jsctl.commands.auth.asking import ask_bytes, ask_number, ask_text
from jsctl.commands.auth.selecting import Auth, now_s
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, UsageError

SECOND_NS = 1_000_000_000
STORAGE_DEFAULT = 1024**3
_PLAIN: Mapping[str, str] = {"subscriptions": "subs"}
_OF_ACCOUNT: Mapping[str, str] = {
    "connections": "conn",
    "exports": "exports",
    "imports": "imports",
    "leafnodes": "leaf",
}
_OF_JETSTREAM: Mapping[str, str] = {
    "js-consumers": "consumer",
    "js-streams": "streams",
    "js-max-pending": "max_ack_pending",
}
_OF_STREAMS: Mapping[str, str] = {
    "js-disk-stream": "disk_max_stream_bytes",
    "js-memory-stream": "mem_max_stream_bytes",
}


def add(call: Call) -> None:
    """A new account of an operator."""
    auth = Auth(call)
    operator = auth.operator(call.text("operator"))
    name = call.text("account") or ask_text(
        call, "Account Name", "A unique name for the Account being added"
    )
    if operator.account(check_name(name, "account")):
        raise Conflict(f"account {name} already exist")
    issuer = _issuer(call)
    answers = {} if call.flag("defaults") else _asked(call)
    account = auth.issuer.new_account(operator, check_name(name, "account"))
    limits = account.claims.nats.limits
    account_limits = replace(limits.account, disallow_bearer=True)
    limits = _limits(call, replace(limits, account=account_limits), answers)
    nats = _others(call, replace(account.claims.nats, limits=limits))
    auth.issuer.change_account(operator, account, nats, issuer=issuer, expires_s=_expiry(call))
    auth.store.save(operator)
    show_account(call, account, operator)


def _issuer(call: Call) -> str:
    """The operator's key that is to sign; empty for its own one."""
    text = call.text("key")
    return from_text(text, KeyKind.OPERATOR).public if text else ""


def _asked(call: Call) -> dict[str, int]:
    answers: dict[str, int] = {}
    for option, question, of in (
        ("connections", "Maximum Connections", "client connections allowed"),
        ("subscriptions", "Maximum Subscriptions", "subscriptions allowed"),
    ):
        if call.integer(option, NO_LIMIT) == NO_LIMIT:
            help_text = f"The maximum amount of {of} for this account, set using --{option}"
            answers[option] = ask_number(call, question, "-1", help_text)
    call.output.print()
    return answers


def edit(call: Call) -> None:
    """Changes what is given."""
    auth = Auth(call)
    operator, account = auth.account()
    limits = _limits(call, account.claims.nats.limits, {})
    nats = _others(call, replace(account.claims.nats, limits=limits))
    expires_s = _expiry(call)
    if nats != account.claims.nats or expires_s is not None:
        auth.issuer.change_account(operator, account, nats, expires_s=expires_s)
        auth.store.save(operator)
    show_account(call, account, operator)


def _expiry(call: Call) -> int | None:
    length_ns = call.duration("expiry")
    return now_s() + length_ns // SECOND_NS if length_ns > 0 else None


def _others(call: Call, nats: Account) -> Account:
    if call.given("js-cluster-traffic"):
        nats = replace(nats, cluster_traffic=call.text("js-cluster-traffic"))
    tags = with_tags(nats.generic.tags, call.texts("tags"), call.texts("no-tags"))
    return replace(nats, generic=replace(nats.generic, tags=tags))


def _given(call: Call, options: Mapping[str, str], answers: Mapping[str, int]) -> dict[str, int]:
    """The numbers that were given or asked for, by the names of the fields."""
    found = {field: call.integer(name) for name, field in options.items() if call.given(name)}
    found.update({field: answers[name] for name, field in options.items() if name in answers})
    return found


def _limits(call: Call, limits: OperatorLimits, answers: Mapping[str, int]) -> OperatorLimits:
    plain, of_account = _given(call, _PLAIN, answers), _given(call, _OF_ACCOUNT, answers)
    if call.text("payload"):
        plain["payload"] = call.size("payload")
    account = replace(limits.account, **of_account)  # type: ignore[arg-type] # fields of numbers
    if call.switch("bearer") is not None:
        account = replace(account, disallow_bearer=not call.flag("bearer"))
    jetstream = _jetstream(call, limits)
    return replace(limits, nats=replace(limits.nats, **plain), account=account, jetstream=jetstream)


def _jetstream(call: Call, limits: OperatorLimits) -> JetStreamLimits:
    """Limits of storage; off unless the account has it or is to have it."""
    was, wanted = limits.jetstream_enabled, call.switch("jetstream")
    if wanted is False:
        if limits.tiered_limits:
            raise UsageError("the account has JetStream by tiers, which this command does not edit")
        return JetStreamLimits()
    if not was and not wanted:
        return limits.jetstream
    now = limits.jetstream
    if not was:
        unlimited = {"streams": NO_LIMIT, "consumer": NO_LIMIT}
        now = _with(now, {**unlimited, **_storage(call)})
    if call.text("js-disk"):
        now = replace(now, disk_storage=call.size("js-disk"))
    if call.text("js-memory"):
        now = replace(now, mem_storage=call.size("js-memory"))
    numbers = _given(call, _OF_JETSTREAM, {})
    sizes = {field: call.size(name) for name, field in _OF_STREAMS.items() if call.text(name)}
    now = _with(now, {**numbers, **{field: max(0, most) for field, most in sizes.items()}})
    if call.flag("js-stream-size-required"):
        now = replace(now, max_bytes_required=True)
    return now


def _with(limits: JetStreamLimits, numbers: Mapping[str, int]) -> JetStreamLimits:
    return replace(limits, **numbers)  # type: ignore[arg-type] # fields of numbers


def _storage(call: Call) -> dict[str, int]:
    """Storage of an account that gets JetStream: as given, asked for, or 1 GiB by default."""
    found: dict[str, int] = {}
    for option, field, word, unit in (
        ("js-disk", "disk_storage", "Disk", "disk"),
        ("js-memory", "mem_storage", "Memory", "memory"),
    ):
        if call.text(option):
            found[field] = call.size(option)
        elif call.flag("defaults"):
            found[field] = STORAGE_DEFAULT
        else:
            help_text = f"Maximum amount of {unit} this account may use, set using --{option}"
            missing = f"JetStream requires maximum {word} usage set"
            question = f"Maximum JetStream {word} Storage"
            found[field] = ask_bytes(call, question, "1GB", help_text, missing)
    return found
