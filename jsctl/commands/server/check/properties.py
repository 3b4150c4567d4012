"""What the configuration of `server check exporter` calls the flags of a check.

The names are those that `nats` reads. What is not given is no threshold there, whatever the flag's
default is, and a length of time is a number of seconds; a text like `5m` is taken for one, too.
"""

from collections.abc import Mapping
from typing import NamedTuple

from jsctl.api.times import SECOND_NS, parse_duration
from jsctl.commands.toolkit.grammar.values import Value
from jsctl.errors import UsageError


class Check(NamedTuple):
    """Where a check is, and the flags behind its properties by the kind of their values."""

    texts: Mapping[str, str] = {}
    counts: Mapping[str, str] = {}
    times: Mapping[str, str] = {}
    switches: Mapping[str, str] = {}
    maps: Mapping[str, str] = {}
    unset: str = ""
    """What a count is that was not given."""


def _warn_and_critical(names: Mapping[str, str]) -> dict[str, str]:
    """Properties in pairs: `x_warning` is the flag `x-warn`, and so on."""
    pairs = (("warning", "warn"), ("critical", "critical"))
    return {f"{key}_{end}": f"{flag}-{word}" for key, flag in names.items() for end, word in pairs}


CHECKS = {
    "connection": Check(
        times=_warn_and_critical(
            {"connect_time": "connect", "server_rtt": "rtt", "request_rtt": "req"}
        )
    ),
    "stream": Check(
        texts={"stream_name": "stream"},
        counts={
            "sources_lag_critical": "lag-critical",
            "min_sources": "min-sources",
            "max_sources": "max-sources",
            "cluster_expected_peers": "peer-expect",
            "cluster_lag_critical": "peer-lag-critical",
            "messages_warn": "msgs-warn",
            "messages_critical": "msgs-critical",
            "subjects_warn": "subjects-warn",
            "subjects_critical": "subjects-critical",
        },
        times={
            "sources_seen_critical": "seen-critical",
            "cluster_seen_critical": "peer-seen-critical",
        },
    ),
    "consumer": Check(
        texts={"stream_name": "stream", "consumer_name": "consumer"},
        counts={
            "ack_outstanding_critical": "outstanding-ack-critical",
            "waiting_critical": "waiting-critical",
            "unprocessed_critical": "unprocessed-critical",
            "redelivery_critical": "redelivery-critical",
        },
        times={
            "last_delivery_critical": "last-delivery-critical",
            "last_ack_critical": "last-ack-critical",
        },
        switches={"pinned": "pinned"},
    ),
    "message": Check(
        texts={"stream_name": "stream", "subject": "subject", "content_regex": "content"},
        times=_warn_and_critical({"age": "age"}),
        switches={"body_as_timestamp": "body-timestamp"},
    ),
    "meta": Check(
        counts={"expect_servers": "expect", "lag_critical": "lag-critical"},
        times={"seen_critical": "seen-critical"},
    ),
    "jetstream": Check(
        counts={
            **_warn_and_critical(
                {"memory": "mem", "file": "store", "stream": "streams", "consumers": "consumers"}
            ),
            "replica_lag_critical": "replica-lag-critical",
        },
        times={"replica_seen_critical": "replica-seen-critical"},
        switches={"check_replicas": "replicas"},
        unset="-1",
    ),
    "server": Check(
        texts={"name": "name"},
        counts=_warn_and_critical(
            {"cpu": "cpu", "memory": "mem", "connections": "conn", "subscriptions": "subs"}
        ),
        times={
            **_warn_and_critical({"uptime": "uptime"}),
            "tls_expire_warning": "tls-cert-warn",
            "tls_expire_critical": "tls-cert-crit",
        },
        switches={
            "authentication_required": "auth-required",
            "tls_required": "tls-required",
            "jet_stream_required": "js-required",
        },
    ),
    "kv": Check(
        texts={"bucket": "bucket", "key": "key"},
        counts=_warn_and_critical({"values": "values"}),
        unset="-1",
    ),
    "credential": Check(
        texts={"file": "credential"},
        times=_warn_and_critical({"validity": "validity"}),
        switches={"requires_expiry": "require-expiry"},
    ),
    "request": Check(
        texts={"subject": "subject", "payload": "payload", "response_match": "match-payload"},
        times={
            "response_time_warn": "response-warn",
            "response_time_crit": "response-critical",
        },
        maps={"header": "headers", "headers": "match-headers"},
    ),
}
"""By the kind that a configuration names."""


def values_of(kind: str, properties: Mapping[str, object]) -> dict[str, Value]:
    """Values by the names of flags, as if they had been given. Raises UsageError."""
    check = CHECKS[kind]
    known = {**check.texts, **check.counts, **check.times, **check.switches, **check.maps}
    values: dict[str, Value] = dict.fromkeys(check.counts.values(), check.unset or None)
    for name, value in properties.items():
        flag = known.get(name)
        if flag is None:
            raise UsageError(f"a check of kind {kind} has no property {name}")
        if value is None:
            continue
        values[flag] = _value(check, name, value)
    return values


def _value(check: Check, name: str, value: object) -> Value:
    if name in check.switches and isinstance(value, bool):
        return value
    if name in check.maps and isinstance(value, dict):
        return tuple(f"{key}:{text}" for key, text in value.items())
    if isinstance(value, bool | dict | list):
        raise UsageError(f"{name} cannot be {value!r}")
    if name in check.texts and isinstance(value, str):
        return value
    if name in check.counts and isinstance(value, int):
        return str(value)
    if name in check.times:
        return _time(name, value)
    raise UsageError(f"{name} cannot be {value!r}")


def _time(name: str, value: object) -> str:
    try:
        found = parse_duration(value) if isinstance(value, str) else None
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    if isinstance(value, int | float):
        found = round(value * SECOND_NS)
    if found is None:
        raise UsageError(f"{name} cannot be {value!r}")
    return f"{found}ns"
