"""Account limits, account info, requests from whom they are not meant."""

import json
from typing import Any

import pytest

from jsctl.broker.handlers import api
from jsctl.broker.handlers.decisions import (
    BeginRestore,
    Decider,
    ProposeMeta,
    Reply,
    SendSnapshot,
)
from jsctl.broker.handlers.view import AccountUsage, HeldBytes
from jsctl.broker.jetstream.streams.config import ConfigLimits
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


def test_each_tier_has_limits_of_its_own() -> None:
    rig = Rig(3)
    rig.tiers = {"R1": {"streams_max": 1}, "R3": {"memory_max": 10, "bytes_required": True}}
    assert _error(_create(rig, num_replicas=2))[0] == 10120
    assert _error(_create(rig, num_replicas=3))[0] == 10113
    assert _error(_create(rig, num_replicas=3, max_bytes=11))[0] == 10028
    assert "error" not in _create(rig, num_replicas=3, max_bytes=10)
    assert "error" not in _create(rig, name="T", subjects=["t"], max_bytes=99)
    assert _error(_create(rig, name="U", subjects=["u"]))[0] == 10027


def test_a_stream_gets_other_replicas_as_their_tier_allows() -> None:
    rig = Rig(3)
    rig.tiers = {"R1": {"memory_max": 10, "streams_max": 1}, "R3": {"memory_max": 4}}
    _create(rig, max_bytes=5)

    def scaled(replicas: int, most: int) -> int:
        config: dict[str, Any] = {"name": "S", "subjects": ["s"], "storage": "memory"}
        config |= {"num_replicas": replicas, "max_bytes": most}
        answer = rig.ask("STREAM.UPDATE.S", config)
        return int(answer["error"]["err_code"]) if "error" in answer else 0

    assert scaled(2, 5) == 10120
    assert scaled(3, 5) == 10028
    assert scaled(3, 4) == 0
    _create(rig, name="T", subjects=["t"], max_bytes=6)
    assert scaled(1, 5) == 10028
    # How many streams there are is asked only for more replicas.
    assert scaled(1, 4) == 0
    rig.tiers["R1"]["streams_max"] = 3
    rig.tiers["R3"]["streams_max"] = 1
    _create(rig, name="U", subjects=["u"], num_replicas=3, max_bytes=-1)
    assert scaled(3, 3) == 10027


def test_info_tells_of_tiers_that_are_given_or_used() -> None:
    rig = Rig(3)
    rig.tiers = {"R1": {}, "R2": {}, "R3": {"store_max": 9}}
    _create(rig, num_replicas=3, max_bytes=7)
    _create(rig, name="T", subjects=["t"], num_replicas=2, max_bytes=5)
    del rig.tiers["R2"]
    used = {"R3": HeldBytes(21), "R5": HeldBytes(0, 2), "R7": HeldBytes()}
    rig.usage = AccountUsage(HeldBytes(21, 2), tiers=used)
    info = rig.ask("INFO")
    keys = ("memory", "storage", "reserved_memory", "streams")
    told = {tier: tuple(one[key] for key in keys) for tier, one in info["tiers"].items()}
    # Nothing is counted in a tier that is gone, but that there is a stream in it.
    wanted = {"R1": (0, 0, 0, 0), "R2": (0, 0, 0, 1), "R3": (21, 0, 7, 1), "R5": (0, 2, 0, 0)}
    assert told == wanted
    assert tuple(info[key] for key in keys) == (21, 2, 12, 2)
    limits = {tier: one["limits"]["max_storage"] for tier, one in info["tiers"].items()}
    assert limits == {"R1": -1, "R2": 0, "R3": 9, "R5": 0}
    assert info["limits"]["max_storage"] == 0


@pytest.mark.parametrize(("own", "of_tier", "most"), [(0, 0, 1), (0, 2, 2), (3, 2, 2), (2, 3, 2)])
def test_consumers_of_a_stream_have_the_lowest_of_its_limits(
    own: int, of_tier: int, most: int
) -> None:
    """The server's default counts where nobody says anything."""
    rig = Rig()
    rig.config_limits = ConfigLimits(consumers_default_max=1)
    _create(rig, max_consumers=own)
    rig.tiers = {"R1": {"consumers_max": of_tier}}
    made = 0
    while made < 4:
        config = {"name": f"c{made}", "ack_policy": "explicit"}
        decision = rig.decide(
            f"CONSUMER.CREATE.S.c{made}",
            json.dumps({"stream_name": "S", "config": config}).encode(),
        )
        if isinstance(decision, Reply):
            assert _error(json.loads(decision.payload))[0] == 10026
            break
        assert isinstance(decision, ProposeMeta)
        rig.meta.note_in_flight(decision.entries)
        made += 1
    assert made == most
