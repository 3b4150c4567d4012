"""`/healthz`: whether this server is fit to serve, and why not.

The checks run from the outside in (listeners, JetStream, meta layer, assets) and stop at the
first that fails, unless details are asked for.
"""

from collections.abc import Callable, Iterator, Sequence

from jsctl.api.monitoring.health import Healthz, HealthzError, HealthzOptions
from jsctl.broker.system.monitoring.view import Ailment, AssetHealth, HealthFacts, ServerView
from jsctl.dataclass import dataclass

OK, BAD_REQUEST, NOT_FOUND, BROKEN, UNAVAILABLE = 200, 400, 404, 500, 503

# Status code -> word in `status`, without details.
_WORDS = {
    BAD_REQUEST: "error",
    NOT_FOUND: "unavailable",
    BROKEN: "error",
    UNAVAILABLE: "unavailable",
}


@dataclass(frozen=True, slots=True)
class _Fault:
    code: int
    error: HealthzError


def healthz(view: ServerView, options: HealthzOptions) -> Healthz:
    """Status with `status_code`; over HTTP the code is the answer's own status."""
    faults = list(_faults(view, options)) if options.details else []
    if not options.details:
        first = next(_faults(view, options), None)
        faults = [first] if first is not None else []
    if not faults:
        return Healthz(status="ok", status_code=OK)
    code = faults[0].code
    if options.details:
        errors = tuple(fault.error for fault in faults)
        return Healthz(status="error", status_code=code, errors=errors)
    return Healthz(status=_WORDS[code], status_code=code, error=faults[0].error.error)


def _faults(view: ServerView, options: HealthzOptions) -> Iterator[_Fault]:
    """What is wrong, most important first. A check that fails hides those behind it."""
    for check in (_bad_request, _listeners, _jetstream):
        fault, done = check(view, options)
        if fault is not None:
            yield fault
        if done:
            return
    facts = view.health()
    missing = _not_found(facts, options)
    if missing is not None:
        yield missing
        return
    for asset in _selected(facts.assets, options):
        if asset.ailment is not None:
            yield _asset_fault(asset, asset.ailment)


Check = tuple[_Fault | None, bool]


def _bad_request(view: ServerView, options: HealthzOptions) -> Check:
    for missing, given, what in (
        (not options.account, options.stream, ("account", "stream")),
        (not options.stream, options.consumer, ("stream", "consumer")),
    ):
        if missing and given:
            text = f'"{what[0]}" must not be empty when checking {what[1]} health'
            return _fault(BAD_REQUEST, "BAD_REQUEST", text), True
    return None, False


def _listeners(view: ServerView, options: HealthzOptions) -> Check:
    reason = view.health(assets=False).not_ready
    if reason:
        return _fault(BROKEN, "CONNECTION", reason), True
    return None, options.js_server_only or not view.settings.jetstream


def _jetstream(view: ServerView, options: HealthzOptions) -> Check:
    facts = view.health(assets=False)
    if not facts.jetstream_enabled:
        return _fault(UNAVAILABLE, "JETSTREAM", "JetStream not enabled"), True
    if options.js_enabled_only or options.js_enabled:
        return None, True
    if facts.meta_problem:
        return _fault(UNAVAILABLE, "JETSTREAM", facts.meta_problem), True
    return None, view.settings.clustered and options.js_meta_only


def _not_found(facts: HealthFacts, options: HealthzOptions) -> _Fault | None:
    if not options.account:
        return None
    assets = [asset for asset in facts.assets if asset.account == options.account]
    where = {"account": options.account}
    if options.account not in facts.accounts:
        text = f'JetStream account "{options.account}" not found'
        return _fault(NOT_FOUND, "ACCOUNT", text, **where)
    if not options.stream:
        return None
    assets = [asset for asset in assets if asset.stream == options.stream]
    where["stream"] = options.stream
    if not assets:
        text = f'JetStream stream "{options.stream}" not found on account "{options.account}"'
        return _fault(NOT_FOUND, "STREAM", text, **where)
    if options.consumer and not any(asset.consumer == options.consumer for asset in assets):
        text = (
            f'JetStream consumer "{options.consumer}" not found for stream'
            f' "{options.stream}" on account "{options.account}"'
        )
        return _fault(NOT_FOUND, "CONSUMER", text, **where, consumer=options.consumer)
    return None


def _selected(assets: Sequence[AssetHealth], options: HealthzOptions) -> Iterator[AssetHealth]:
    for asset in assets:
        if options.account not in ("", asset.account) or options.stream not in ("", asset.stream):
            continue
        if not asset.consumer or options.consumer in ("", asset.consumer):
            yield asset


_SAYINGS: dict[Ailment, Callable[[str], str]] = {
    Ailment.MISSING: lambda reason: " could not be recovered",
    Ailment.WRITE_ERROR: lambda reason: f" write error: {reason}",
    Ailment.NOT_CURRENT: lambda reason: f" is not current: {reason}",
}


def _asset_fault(asset: AssetHealth, ailment: Ailment) -> _Fault:
    names = [asset.account, asset.stream] + ([asset.consumer] if asset.consumer else [])
    kind = "consumer" if asset.consumer else "stream"
    text = f"JetStream {kind} '{' > '.join(names)}'{_SAYINGS[ailment](asset.reason)}"
    return _fault(
        UNAVAILABLE,
        kind.upper(),
        text,
        account=asset.account,
        stream=asset.stream,
        consumer=asset.consumer,
    )


def _fault(
    code: int, kind: str, text: str, account: str = "", stream: str = "", consumer: str = ""
) -> _Fault:
    error = HealthzError(type=kind, account=account, stream=stream, consumer=consumer, error=text)
    return _Fault(code, error)
