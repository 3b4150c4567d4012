"""Account limits, account info, requests from whom they are not meant."""

from typing import Any

import pytest

from jsctl.broker.handlers import api
from jsctl.broker.handlers.decisions import BeginRestore, Decider, SendSnapshot
from tests.support.jetstream_rig import Rig


def _error(answer: Any) -> tuple[int, str]:
    return answer["error"]["err_code"], answer["error"]["description"]


def _create(rig: Rig, **config: Any) -> Any:
    config = {"name": "S", "subjects": ["s"], "storage": "memory", **config}
    return rig.ask(f"STREAM.CREATE.{config['name']}", config)


@pytest.mark.parametrize(
    ("limits", "config", "code"),
    [
        ({"bytes_required": True}, {}, 10113),
        ({"memory_stream_bytes_max": 5}, {"max_bytes": 6}, 10122),
        ({"store_stream_bytes_max": 5}, {"max_bytes": 6, "storage": "file"}, 10122),
        ({"memory_max": 5}, {"max_bytes": 6}, 10028),
        ({"store_max": 5}, {"max_bytes": 6, "storage": "file"}, 10047),
    ],
)
def test_account_limits(limits: dict[str, Any], config: dict[str, Any], code: int) -> None:
    rig = Rig()
    rig.limits = limits
    assert _error(_create(rig, **config))[0] == code


def test_reservations_add_up_and_are_shown() -> None:
    rig = Rig()
    rig.limits = {"memory_max": 10}
    _create(rig, max_bytes=6)
    assert _error(_create(rig, name="T", subjects=["t"], max_bytes=5))[0] == 10028
    answer = rig.ask("INFO")
    assert (answer["reserved_memory"], answer["streams"]) == (6, 1)
    assert answer["limits"]["max_memory"] == 10
    assert answer["api"]["level"] == 5


def test_who_is_not_answered() -> None:
    rig = Rig()
    assert _error(rig.ask("INFO", account="NOJS")) == (
        10039,
        "JetStream not enabled for account",
    )
    assert rig.ask("STREAM.CREATE.A.B", {"name": "A"}) is None
    assert rig.ask("ACCOUNT.PURGE.A") is None
    headers = b"NATS/1.0\r\nNats-Required-Api-Level: 6\r\n\r\n"
    assert _error(rig.ask("INFO", headers=headers))[0] == 10185
    headers = b"NATS/1.0\r\nNats-Required-Api-Level: 5\r\n\r\n"
    assert "error" not in rig.ask("INFO", headers=headers)


def test_purging_an_account() -> None:
    rig = Rig()
    _create(rig)
    _create(rig, name="T", subjects=["t"])
    assert rig.ask("ACCOUNT.PURGE.A", system=True)["initiated"] is True
    assert rig.ask("STREAM.NAMES")["streams"] is None


def test_archives_are_checked_before_they_begin() -> None:
    rig = Rig()
    _create(rig)
    assert _error(rig.ask("STREAM.SNAPSHOT.S", {}))[0] == 10003
    assert _error(rig.ask("STREAM.SNAPSHOT.T", {"deliver_subject": "d"}))[0] == 10059
    assert _error(rig.ask("STREAM.SNAPSHOT.S", {"deliver_subject": "x.*"}))[0] == 10015
    assert isinstance(rig.decide("STREAM.SNAPSHOT.S", b'{"deliver_subject":"d"}'), SendSnapshot)
    assert _error(rig.ask("STREAM.RESTORE.S", {"config": {"name": "S"}}))[0] == 10130
    decision = rig.decide("STREAM.RESTORE.T", b'{"config":{"name":"T"},"state":{}}')
    assert isinstance(decision, BeginRestore)
    group = decision.assignment.group
    assert (group.founders, group.preferred) == (("peer0",), "peer0")
    assert rig.meta.stream("A", "T") is None, "there is no stream before there is an archive"


@pytest.mark.parametrize(
    ("subject", "target"),
    [
        (b"$JS.API.STREAM.INFO.S", Decider.STREAM_LEADER),
        (b"$JS.API.STREAM.CREATE.S", Decider.META_LEADER),
        (b"$JS.API.CONSUMER.INFO.S.C", Decider.CONSUMER_LEADER),
        (b"$JS.API.CONSUMER.CREATE.S.C.a.b", Decider.META_LEADER),
        (b"$JS.API.ACCOUNT.STREAM.MOVE.A.S", Decider.META_LEADER),
    ],
)
def test_who_answers(subject: bytes, target: Decider) -> None:
    resolved = api.resolve(subject)
    assert resolved is not None
    assert resolved.route.target is target


@pytest.mark.parametrize(
    "subject",
    [b"$JS.API.STREAM.CREATE.a.b", b"$JS.API.X", b"$JS.API.STREAM.INFO.", b"foo", b"$JS.API."],
)
def test_nobody_answers(subject: bytes) -> None:
    assert api.resolve(subject) is None
