"""The rules of checks about single servers."""

from jsctl.api.times import SECOND_NS, format_duration, parse_time
from jsctl.commands.audit.catalog import Check
from jsctl.commands.audit.examples import (
    FAIL,
    PASS,
    SKIP,
    WARN,
    Examples,
    answers,
    at,
    number,
    text,
)
from jsctl.commands.toolkit.archives.files import Reader
from jsctl.render.humanize import size

DAY_NS = 86_400 * SECOND_NS
_CERTIFICATES = ("server", "cluster", "gateway", "leaf", "mqtt", "websocket")


def health(_check: Check, reader: Reader, found: Examples) -> str:
    """Servers that do not call themselves healthy."""
    for _, server, data in answers(reader, "health"):
        status = text(data, "status")
        if status not in ("", "ok"):
            found.add(f"{server}: {int(number(data, 'status_code'))} - {status}")
    return found.worst(WARN)


def versions(_check: Check, reader: Reader, found: Examples) -> str:
    """Servers of different versions."""
    seen: dict[str, str] = {}
    for _, server, data in answers(reader, "variables"):
        seen.setdefault(text(data, "version"), server)
    if not seen:
        return SKIP
    if len(seen) == 1:
        return PASS
    for version, server in seen.items():
        found.add(f"{server} - {version}")
    return FAIL


def busy(check: Check, reader: Reader, found: Examples) -> str:
    """The load of all cores together."""
    for cluster, server, data in answers(reader, "variables"):
        cores = number(data, "cores")
        if cores and number(data, "cpu") / cores > check.value("cpu"):
            found.add(f"{cluster} - {server}: {number(data, 'cpu') / cores:.1f}%")
    return found.worst(FAIL)


def slow_consumers(_check: Check, reader: Reader, found: Examples) -> str:
    """Clients that do not keep up."""
    for cluster, server, data in answers(reader, "variables"):
        if slow := int(number(data, "slow_consumers")):
            found.add(f"{cluster}/{server}: {slow} slow consumers")
    return found.worst(WARN)


def resources(check: Check, reader: Reader, found: Examples) -> str:
    """Memory and disk of JetStream."""
    for _, server, data in answers(reader, "jetstream_info"):
        for what, used, limit in (
            ("memory", "memory", "max_memory"),
            ("store", "storage", "max_storage"),
        ):
            value, most = int(number(data, used)), int(number(data, "config", limit))
            if most > 0 and value > int(most * check.value(what) / 100):
                found.add(f"{server} {what} usage: {size(value)} of {size(most)}")
    return found.worst(WARN)


def domains(_check: Check, reader: Reader, found: Examples) -> str:
    """Blanks in names of domains."""
    for cluster, server, data in answers(reader, "jetstream_info"):
        domain = text(data, "config", "domain")
        if set(domain) & set(" \t\r\n"):
            found.add(f"Cluster {cluster} Server {server} Domain {domain}")
    return found.worst(WARN)


def authentication(_check: Check, reader: Reader, found: Examples) -> str:
    """Servers that let everybody in."""
    for _, server, data in answers(reader, "variables"):
        if not at(data, "auth_required"):
            found.add(f"{server}: authentication not required")
    return found.worst(WARN)


def certificates(check: Check, reader: Reader, found: Examples) -> str:
    """Certificates that expired or soon will; SKIP when there are none at all."""
    checked, worst = 0, PASS
    warn = check.value("tls_expire_warning") * DAY_NS
    critical = check.value("tls_expire_critical") * DAY_NS
    for cluster, server, data in answers(reader, "variables"):
        now_ns = _moment_ns(text(data, "now"))
        for component in _CERTIFICATES:
            where = data if component == "server" else at(data, component)
            expiry = text(where, "tls_cert_not_after")
            expires_ns = _moment_ns(expiry)
            if expires_ns <= 0:
                continue
            checked += 1
            left_ns = expires_ns - now_ns
            name = "leafnode" if component == "leaf" else component
            about = f"{cluster}/{server} {name} TLS certificate"
            if left_ns > warn:
                continue
            if left_ns <= 0:
                found.add(f"{about} expired (expired_at={_told(expiry)})")
            else:
                left = format_duration(left_ns // SECOND_NS * SECOND_NS)
                found.add(f"{about} expires in {left} (expires_at={_told(expiry)})")
            worst = FAIL if left_ns <= critical or worst == FAIL else WARN
    return worst if checked else SKIP


def _moment_ns(moment: str) -> int:
    try:
        return parse_time(moment) if moment else 0
    except ValueError:
        return 0


def _told(moment: str) -> str:
    """`2026-01-02 03:04:05 +0000 UTC`: certificates have no other zone."""
    return f"{moment.replace('T', ' ').removesuffix('Z')} +0000 UTC"
