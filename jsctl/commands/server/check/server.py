"""`server check server`: load, uptime, options and certificates of a server."""

from jsctl.api.monitoring.varz import Varz
from jsctl.api.server import EventFilterOptions
from jsctl.api.times import SECOND_NS, format_duration, parse_time
from jsctl.client.system import NatsSystem, NoSystemRights
from jsctl.commands.server.check.meta import NO_RESPONDERS
from jsctl.commands.server.check.run import (
    Stopped,
    checked,
    client_for,
    critical_if_it_fails,
    seconds,
)
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Unreachable, UsageError
from jsctl.render.humanize import duration, go_moment
from jsctl.render.reports.server.check import CheckResult


async def server(call: Call) -> int:
    """Checks a server."""
    return await checked(call, "server", call.text("name"), body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    name = call.text("name")
    async with client_for(call, result) as client:
        with critical_if_it_fails(result, "varz failed"):
            if not name:
                raise UsageError("server name is required")
            where = EventFilterOptions(server_name=name, exact_match=True)
            try:
                replies = await NatsSystem(client, call.settings).gather(
                    "VARZ", where=where, expected=1
                )
            except NoSystemRights:
                raise Unreachable(NO_RESPONDERS) from None
            if not replies:
                raise Unreachable("nats: timeout")
            if replies[0].error is not None:
                raise Unreachable(f"invalid response received: {replies[0].error.description}")
    facts = replies[0].as_(Varz)
    if facts.server_name != name:
        result.critical(f'result from wrong server "{facts.server_name}"')
        return
    _judge_options(call, result, facts)
    _judge_certificates(call, result, facts)
    _judge_uptime(call, result, facts)
    _judge_load(call, result, facts)


def _judge_options(call: Call, result: CheckResult, facts: Varz) -> None:
    for flag, is_so, fine, wrong in (
        (
            "js-required",
            facts.jetstream.config is not None,
            "JetStream enabled",
            "JetStream not enabled",
        ),
        ("tls-required", facts.tls_required, "TLS required", "TLS not required"),
        (
            "auth-required",
            facts.auth_required,
            "Authentication required",
            "Authentication not required",
        ),
    ):
        if call.flag(flag) and is_so:
            result.ok(fine)
        elif call.flag(flag):
            result.critical(wrong)


def _judge_certificates(call: Call, result: CheckResult, facts: Varz) -> None:
    warn_ns, critical_ns = call.duration("tls-cert-warn"), call.duration("tls-cert-crit")
    if warn_ns <= 0 and critical_ns <= 0:
        return
    found = {
        "server": facts.tls_cert_not_after,
        "cluster": facts.cluster.tls_cert_not_after,
        "gateway": facts.gateway.tls_cert_not_after,
        "leafnode": facts.leaf.tls_cert_not_after,
        "mqtt": facts.mqtt.tls_cert_not_after,
        "websocket": facts.websocket.tls_cert_not_after,
    }
    ends = {part: text for part, text in found.items() if parse_time(text)}
    if not ends:
        result.critical(
            "TLS certificate expiry thresholds configured but no TLS certificates found"
        )
        raise Stopped
    now_ns = parse_time(facts.now)
    for part, text in ends.items():
        left_ns = (parse_time(text) - now_ns) // SECOND_NS * SECOND_NS
        if left_ns <= 0:
            result.critical(f"{part} TLS certificate expired (expired_at={go_moment(text)})")
            continue
        sentence = (
            f"{part} TLS certificate expires in {format_duration(left_ns)} "
            f"(expires_at={go_moment(text)})"
        )
        if 0 < critical_ns >= left_ns:
            result.critical(sentence)
        elif 0 < warn_ns >= left_ns:
            result.warn(sentence)
        else:
            result.ok(sentence)


def _judge_uptime(call: Call, result: CheckResult, facts: Varz) -> None:
    up_ns = parse_time(facts.now) - parse_time(facts.start)
    warn_ns, critical_ns = call.duration("uptime-warn"), call.duration("uptime-critical")
    if warn_ns > 0 or critical_ns > 0:
        if critical_ns > warn_ns:
            result.critical("Up invalid thresholds")
            raise Stopped
        sentence = f"Up {duration(up_ns)}"
        if up_ns <= critical_ns:
            result.critical(sentence)
        elif up_ns <= warn_ns:
            result.warn(sentence)
        else:
            result.ok(sentence)
    result.measure(
        "uptime",
        up_ns / SECOND_NS,
        warning=seconds(call, "uptime-warn"),
        critical=seconds(call, "uptime-critical"),
        unit="s",
        help="NATS Server uptime in seconds",
    )


def _judge_load(call: Call, result: CheckResult, facts: Varz) -> None:
    rows = (
        ("cpu", "cpu", "CPU", facts.cpu, "%", "NATS Server CPU usage in percentage"),
        ("mem", "mem", "Memory", facts.mem, "", "NATS Server memory usage in bytes"),
        ("connections", "conn", "Connections", facts.connections, "", "Active connections"),
        ("subscriptions", "subs", "Subscriptions", facts.subscriptions, "", "Active subscriptions"),
    )
    for key, flag, _, value, unit, text in rows:
        warn, critical = call.integer(f"{flag}-warn"), call.integer(f"{flag}-critical")
        result.measure(key, value, warning=warn, critical=critical, unit=unit, help=text)
    for _, flag, word, value, _, _ in rows:
        warn, critical = call.integer(f"{flag}-warn"), call.integer(f"{flag}-critical")
        if warn or critical:
            can_invert = flag in ("conn", "subs")
            _judge(result, word, value, warn, critical, can_invert=can_invert)


def _judge(
    result: CheckResult, word: str, value: float, warn: int, critical: int, *, can_invert: bool
) -> None:
    few = critical < warn
    if few and not can_invert:
        result.critical(f"{word} invalid thresholds")
        return
    sentence = f"{word} {value:.2f}"
    if value <= critical if few else value >= critical:
        result.critical(sentence)
    elif value <= warn if few else value >= warn:
        result.warn(sentence)
    else:
        result.ok(sentence)
