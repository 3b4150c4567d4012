"""Answers of the stream API side by side with those of the real server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jsctl.broker.jetstream.streams.stream import SUBJECTS_PER_PAGE
from tests.support.jetstream_rig import Rig
from tests.support.real_server import RealServer, real_server

pytestmark = pytest.mark.processes

TIMES = frozenset({"created", "ts", "first_ts", "last_ts", "time", "active", "leader", "api"})
Json = Any


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("nats")) as server:
        yield server


def _plain(value: Json) -> Json:
    """Without times and names that differ from run to run."""
    if isinstance(value, dict):
        return {key: "*" if key in TIMES else _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


class Both:
    """Our handlers and the real server, asked the same."""

    def __init__(self, real: RealServer) -> None:
        self.real = real
        self.rig = Rig()
        for name in real.ask("STREAM.NAMES")["streams"] or []:
            real.ask(f"STREAM.DELETE.{name}")

    def ask(self, subject: str, payload: bytes | dict[str, Json] = b"") -> Json:
        ours, theirs = self.rig.ask(subject, payload), self.real.ask(subject, payload)
        if theirs.get("limit") == 100_000:
            theirs["limit"] = SUBJECTS_PER_PAGE  # Pages are smaller here, on purpose.
        assert _plain(ours) == _plain(theirs)
        assert list(ours) == list(theirs), "the fields come in the same order"
        return ours

    def publish(self, subject: str, payload: bytes = b"", **fields: str) -> Json:
        headers = b""
        if fields:
            lines = [f"{key.replace('_', '-')}: {value}" for key, value in fields.items()]
            headers = ("NATS/1.0\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode()
        ours = self.rig.publish(subject, payload, headers)
        ((_, data),) = self.real.request(subject, payload, headers)
        assert ours == json.loads(data)
        return ours

    def direct(self, subject: str, payload: bytes | dict[str, Json] = b"") -> Json:
        body = json.dumps(payload).encode() if isinstance(payload, dict) else payload
        ours = self.rig.direct(f"DIRECT.GET.{subject}", body)
        theirs = self.real.request(f"$JS.API.DIRECT.GET.{subject}", body)
        assert _untimed(ours) == _untimed(theirs)
        return ours

    def create(self, **config: Json) -> Json:
        config = {"name": "S", "subjects": ["s.>"], "storage": "memory", **config}
        return self.ask(f"STREAM.CREATE.{config['name']}", config)


def _untimed(answers: list[tuple[bytes, bytes]]) -> list[tuple[list[bytes], bytes]]:
    return [
        ([line for line in head.split(b"\r\n") if b"Time-Stamp" not in line], data)
        for head, data in answers
    ]


@pytest.fixture
def both(real: RealServer) -> Both:
    return Both(real)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"subjects": []},
        {"max_age": 60 * 10**9},
        {"max_msgs": 0, "max_bytes": -5, "max_consumers": -2},
        {"description": "<a> & b", "metadata": {"k": "<v>"}},
        {"retention": "workqueue", "discard": "new", "max_msgs": 5},
        {"retention": "interest"},
        {"subject_delete_marker_ttl": 10**9},
        {"allow_msg_ttl": True, "allow_direct": True, "allow_rollup_hdrs": True},
        {"republish": {"dest": "r.>"}},
        {"subject_transform": {"src": "s.*", "dest": "t.{{wildcard(1)}}"}},
        {"first_seq": 10},
        {"placement": {"cluster": "X"}},
        {"consumer_limits": {"inactive_threshold": 10**9}},
        {"name": "T"},
        {"discard": "new", "discard_new_per_subject": True, "max_msgs_per_subject": 2},
        {"compression": "s2"},
        {"duplicate_window": 10**9},
    ],
)
def test_creating(both: Both, config: dict[str, Json]) -> None:
    both.create(**config)
    both.ask(f"STREAM.INFO.{config.get('name', 'S')}")
    both.create(**config)


@pytest.mark.parametrize(
    "config",
    [
        {"description": "x" * 5000},
        {"metadata": {"k": "x" * (128 << 10)}},
        {"num_replicas": 6},
        {"num_replicas": -1},
        {"num_replicas": 3},
        {"max_age": 1000},
        {"max_age": -1},
        {"duplicate_window": 10},
        {"duplicate_window": -10},
        {"duplicate_window": 10**12, "max_age": 10**9},
        {"deny_purge": True, "allow_rollup_hdrs": True},
        {"discard_new_per_subject": True},
        {"discard_new_per_subject": True, "discard": "new"},
        {"subject_delete_marker_ttl": 10**8},
        {"subject_delete_marker_ttl": -1},
        {"subjects": ["a..b"]},
        {"subjects": ["a", "a"]},
        {"subjects": ["a.*", "a.b"]},
        {"subjects": [">"]},
        {"subjects": ["$JS.API.>"]},
        {"subjects": ["$JS.EVENT.>"]},
        {"subjects": ["$SYS.>"]},
        {"subjects": ["$SYS.ACCOUNT.X"]},
        {"mirror_direct": True},
        {"mirror": {"name": "M"}},
        {"mirror": {"name": "M"}, "subjects": [], "sources": [{"name": "O"}]},
        {"mirror": {"name": "M.x"}, "subjects": []},
        {"sources": [{"name": "O.x"}]},
        {"sources": [{"name": "O"}, {"name": "O"}]},
        {"placement": {"preferred": "n"}},
        {"sealed": True},
        {"republish": {"dest": "s.x"}},
        {"republish": {"src": "a.*", "dest": "r.{{wildcard(3)}}"}},
        {"subject_transform": {"src": "a..b", "dest": "x"}},
        {"bogus": 1},
        {"storage": "tape"},
        {"max_msgs": "x"},
        {"allow_msg_counter": True, "discard": "new"},
        {"allow_msg_counter": True, "allow_msg_ttl": True},
        {"allow_msg_counter": True, "retention": "interest"},
        {"allow_msg_schedules": True, "discard": "new"},
        {"persist_mode": "async"},
        {"persist_mode": "async", "storage": "file", "allow_atomic": True},
        {"pedantic": True, "max_msgs": -2},
        {"pedantic": True, "max_msgs_per_subject": -2},
        {"pedantic": True, "max_age": 10**9},
        {"pedantic": True, "subject_delete_marker_ttl": 10**9},
    ],
)
def test_configs_that_are_refused(both: Both, config: dict[str, Json]) -> None:
    both.create(**config)


def test_names_and_subjects_in_use(both: Both) -> None:
    both.create()
    both.create(max_msgs=3)
    both.create(name="T", subjects=["s.a"])
    both.ask("STREAM.CREATE.X", {"name": "S"})
    both.ask("STREAM.CREATE.X", b"{bad")
    both.ask("STREAM.CREATE.X", b"[]")
    both.ask("STREAM.CREATE.a/b", {"name": "a/b"})
    both.ask("STREAM.UPDATE.N", {"name": "N"})
    both.ask("STREAM.INFO.N")
    both.ask("STREAM.DELETE.N")
    both.ask("STREAM.DELETE.S", {"a": 1})
    both.ask("STREAM.DELETE.S", b"{}")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"max_msgs": 5, "description": "d", "subjects": ["s.a", "s.b"]}),
        ({}, {"storage": "file"}),
        ({}, {"retention": "workqueue"}),
        ({}, {"retention": "interest"}),
        ({"deny_delete": True}, {}),
        ({"deny_purge": True}, {}),
        ({"allow_msg_ttl": True}, {}),
        ({}, {"sealed": True}),
        ({}, {"max_consumers": 4}),
        ({}, {"allow_direct": True, "allow_msg_ttl": True}),
        ({}, {"num_replicas": 3}),
        ({}, {"name": "T"}),
        ({}, {"max_age": 10**9}),
        ({"metadata": {"a": "b"}}, {"metadata": {"c": "d"}}),
    ],
)
def test_updates(both: Both, first: dict[str, Json], second: dict[str, Json]) -> None:
    both.create(**first)
    base = {"name": "S", "subjects": ["s.>"], "storage": "memory"}
    both.ask("STREAM.UPDATE.S", {**base, **second})
    both.ask("STREAM.INFO.S")


def test_a_sealed_stream(both: Both) -> None:
    both.create()
    both.publish("s.a", b"1")
    base = {"name": "S", "subjects": ["s.>"], "storage": "memory"}
    both.ask("STREAM.UPDATE.S", {**base, "sealed": True})
    both.publish("s.a", b"2")
    both.ask("STREAM.PURGE.S")
    both.ask("STREAM.MSG.DELETE.S", {"seq": 1})
    both.ask("STREAM.UPDATE.S", base)


def test_lists(both: Both) -> None:
    both.ask("STREAM.NAMES")
    both.ask("STREAM.LIST")
    for name in ("C", "A", "B"):
        both.create(name=name, subjects=[f"{name}.*"])
    both.ask("STREAM.NAMES")
    both.ask("STREAM.LIST")
    both.ask("STREAM.NAMES", {"offset": 1})
    both.ask("STREAM.NAMES", {"offset": 9})
    both.ask("STREAM.NAMES", {"subject": "A.x"})
    both.ask("STREAM.NAMES", {"subject": "*.x"})
    both.ask("STREAM.NAMES", {"subject": "nothing"})
    both.ask("STREAM.LIST", {"subject": "B.x"})
    both.ask("STREAM.LIST", {"subject": "nothing"})
    both.ask("STREAM.NAMES", {"bogus": 1})
    both.ask("STREAM.LIST", b"{")


def test_messages(both: Both) -> None:
    both.create(allow_direct=True)
    both.ask("STREAM.MSG.GET.S", {"seq": 1})
    for at in range(6):
        both.publish(f"s.{at % 2}", b"m%d" % at)
    both.publish("s.h", b"<h>", Header="x")
    both.ask("STREAM.INFO.S", {"subjects_filter": ">"})
    both.ask("STREAM.INFO.S", {"subjects_filter": "s.0", "deleted_details": True})
    both.ask("STREAM.INFO.S", {"subjects_filter": ">", "offset": 2})
    both.ask("STREAM.INFO.S", {"bogus": 1})
    for body in (
        {"seq": 3},
        {"seq": 7},
        {"seq": 7, "no_hdr": True},
        {"seq": 99},
        {"last_by_subj": "s.1"},
        {"last_by_subj": "s.*"},
        {"last_by_subj": "x"},
        {"seq": 2, "next_by_subj": "s.0"},
        {"next_by_subj": "s.1"},
        {"seq": 1, "last_by_subj": "s.1"},
        {},
    ):
        both.ask("STREAM.MSG.GET.S", body)
    both.ask("STREAM.MSG.GET.S")
    both.ask("STREAM.MSG.GET.N", {"seq": 1})
    both.ask("STREAM.MSG.DELETE.S", {"seq": 3})
    both.ask("STREAM.MSG.DELETE.S", {"seq": 3})
    both.ask("STREAM.MSG.DELETE.S", {"seq": 5, "no_erase": True})
    both.ask("STREAM.MSG.DELETE.S")
    both.ask("STREAM.INFO.S", {"deleted_details": True})
    both.ask("STREAM.PURGE.S", {"seq": 3, "keep": 1})
    both.ask("STREAM.PURGE.S", {"filter": "s.0", "keep": 1})
    both.ask("STREAM.PURGE.S", {"seq": 4})
    both.ask("STREAM.PURGE.S", {"filter": "s.1", "seq": 5})
    both.ask("STREAM.INFO.S", {"deleted_details": True})
    both.ask("STREAM.PURGE.S", {"bogus": 1})
    both.ask("STREAM.PURGE.S")
    both.ask("STREAM.PURGE.N")
    both.ask("STREAM.INFO.S")


def test_denied_deletion(both: Both) -> None:
    both.create(deny_delete=True, deny_purge=True)
    both.publish("s.a")
    both.ask("STREAM.MSG.DELETE.S", {"seq": 1})
    both.ask("STREAM.PURGE.S")


def test_publishing(both: Both) -> None:
    both.create(allow_rollup_hdrs=True, allow_msg_ttl=True, max_msg_size=100)
    both.publish("s.a", b"1", Nats_Msg_Id="x")
    both.publish("s.a", b"1", Nats_Msg_Id="x")
    both.publish("s.a", b"1", Nats_Expected_Stream="T")
    both.publish("s.a", b"1", Nats_Expected_Last_Sequence="7")
    both.publish("s.a", b"1", Nats_Expected_Last_Sequence="1")
    both.publish("s.a", b"1", Nats_Expected_Last_Subject_Sequence="7")
    both.publish("s.a", b"1", Nats_Expected_Last_Subject_Sequence="2")
    both.publish("s.n", b"1", Nats_Expected_Last_Subject_Sequence="0")
    both.publish("s.a", b"1", Nats_Expected_Last_Msg_Id="q")
    both.publish("s.a", b"1", Nats_Expected_Last_Subject_Sequence_Subject="s.*")
    both.publish(
        "s.a",
        b"1",
        Nats_Expected_Last_Subject_Sequence="4",
        Nats_Expected_Last_Subject_Sequence_Subject="s.n",
    )
    both.publish("s.a", b"1", Nats_Rollup="sub")
    both.publish("s.a", b"1", Nats_Rollup="bad")
    both.publish("s.a", b"1", Nats_TTL="bad")
    both.publish("s.a", b"1", Nats_TTL="1h")
    both.publish("s.a", b"1", Nats_TTL="500ms")
    both.publish("s.a", b"1", Nats_TTL="never")
    both.publish("s.a", b"1", Nats_TTL="0")
    both.publish("s.a", b"x" * 101)
    both.publish("s.a", b"1", Nats_Incr="+1")
    both.publish("s.a", b"1", Nats_Schedule="@every 1s")
    both.publish("s.a", b"1", Nats_Batch_Id="b")
    both.publish("s.a", b"1", Nats_Stream_Source="b")
    both.publish("s.a", b"1", Big="x" * 70_000)
    both.ask("STREAM.INFO.S", {"subjects_filter": ">"})
    both.publish("s.a", b"1", Nats_Rollup="all")
    both.ask("STREAM.INFO.S", {"subjects_filter": ">"})


def test_publishing_where_features_are_off(both: Both) -> None:
    both.create()
    both.publish("s.a", b"1", Nats_Rollup="sub")
    both.publish("s.a", b"1", Nats_TTL="5")


@pytest.mark.parametrize(
    "limits",
    [
        {"max_msgs": 2},
        {"max_bytes": 60},
        {"max_msgs_per_subject": 1, "discard_new_per_subject": True},
        {"max_msgs_per_subject": 1, "max_msgs": 2},
    ],
)
@pytest.mark.parametrize("discard", ["new", "old"])
def test_limits(both: Both, limits: dict[str, Json], discard: str) -> None:
    if discard == "old":
        limits = {key: item for key, item in limits.items() if key != "discard_new_per_subject"}
    both.create(discard=discard, **limits)
    for at in range(7):
        both.publish(f"s.{at % 3}", b"data")
    both.ask("STREAM.INFO.S", {"subjects_filter": ">", "deleted_details": True})


def test_a_full_stream_takes_what_replaces_as_much(both: Both) -> None:
    both.create(discard="new", max_bytes=100, max_msgs_per_subject=1)
    for size in (3, 4, 60, 3, 200, 90):
        both.publish("s.a", b"x" * size)
    both.ask("STREAM.INFO.S")


def test_without_interest_sequences_are_used_up(both: Both) -> None:
    both.create(retention="interest")
    both.rig.interest = False
    both.publish("s.a", b"x")
    both.ask("STREAM.INFO.S")


def test_direct_get(both: Both) -> None:
    both.create(allow_direct=True)
    for at in range(8):
        both.publish(f"s.{at % 3}", b"m%d" % at)
    both.publish("s.h", b"h", Header="x")
    for body in (
        {"seq": 2},
        {"seq": 9},
        {"seq": 9, "no_hdr": True},
        {"seq": 99},
        {"last_by_subj": "s.1"},
        {"last_by_subj": "none"},
        {"seq": 3, "next_by_subj": "s.0"},
        {"seq": 1, "batch": 3},
        {"seq": 3, "batch": 30, "next_by_subj": "s.1"},
        {"seq": 1, "batch": 5, "max_bytes": 60},
        {"batch": 3},
        {"seq": 99, "batch": 3},
        {"multi_last": ["s.0", "s.2"]},
        {"multi_last": ["s.*"], "batch": 2},
        {"multi_last": ["s.>"], "up_to_seq": 5},
        {"multi_last": ["none"]},
        {"multi_last": ["s.0"], "seq": 1},
        {"seq": 1, "last_by_subj": "s.1"},
        {},
    ):
        both.direct("S", body)
    both.direct("S")
    both.direct("S", b"{bad")
    both.direct("S.s.1")
    both.direct("S.s.9")
    both.direct("S.s.1", {"max_bytes": 1})
    both.direct("S.s.1", {"batch": -1})
    both.direct("S.s.1", {"no_hdr": True})


def test_direct_gets_of_more_than_one_kind(both: Both) -> None:
    both.create(allow_direct=True)
    for at in range(8):
        both.publish(f"s.{at % 3}", b"m%d" % at, Header="x")
    for body in (
        {"seq": 2, "up_to_seq": 5},
        {"seq": 2, "batch": 3, "up_to_seq": 2},
        {"last_by_subj": "s.1", "up_to_seq": 1},
        {"next_by_subj": "s.1", "up_to_time": "2020-01-01T00:00:00Z"},
        {"seq": 2, "up_to_seq": 5, "up_to_time": "2020-01-01T00:00:00Z"},
        {"multi_last": ["s.1"], "last_by_subj": "s.1"},
        {"multi_last": ["s.1"], "next_by_subj": "s.1"},
        {"multi_last": ["s.1"], "seq": 1, "start_time": "2020-01-01T00:00:00Z"},
        {"multi_last": ["s.1"], "start_time": "2020-01-01T00:00:00Z"},
        {"multi_last": ["s.*"], "seq": 9},
        {"multi_last": ["s.*"], "seq": 8, "up_to_seq": 5},
        {"multi_last": ["s.*"], "no_hdr": True},
        {"multi_last": ["s.*"], "batch": -1},
        {"multi_last": ["s.*"], "max_bytes": -1},
        {"seq": 2, "batch": -1},
        {"next_by_subj": "s.1", "batch": -1},
        {"next_by_subj": "none", "batch": -1},
        {"last_by_subj": "s.1", "batch": -1},
        {"seq": 1, "batch": 3, "max_bytes": -1},
    ):
        both.direct("S", body)


def test_what_needs_a_cluster(both: Both) -> None:
    both.create()
    both.ask("STREAM.LEADER.STEPDOWN.S")
    both.ask("STREAM.PEER.REMOVE.S", {"peer": "x"})


def test_account_info(both: Both) -> None:
    both.create(max_bytes=1000)
    both.ask("INFO", b"{}")
