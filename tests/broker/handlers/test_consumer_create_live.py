"""Creates and updates of consumers, decided here and by a real server: same errors, same config."""

import json
from collections.abc import Mapping
from pathlib import Path

import nats
import pytest

from jsctl.api.codec import decode, encode
from jsctl.api.stream import StreamConfig
from jsctl.api.subjects import parse_api
from jsctl.broker.handlers.consumer_info import shown_config
from jsctl.broker.handlers.consumers import handle
from jsctl.broker.handlers.decisions import ProposeMeta, Reply
from tests.support.consumer_view import ACCOUNT, OneBroker, as_view, request_of
from tests.support.nats_process import real_server

pytestmark = pytest.mark.processes

Values = Mapping[str, object]

STREAMS: tuple[dict[str, object], ...] = (
    {"name": "S", "subjects": ["s.>"]},
    {"name": "W", "subjects": ["w.>"], "retention": "workqueue"},
    {"name": "I", "subjects": ["i.>"], "retention": "interest"},
    {
        "name": "L",
        "subjects": ["l.>"],
        "consumer_limits": {"max_ack_pending": 50, "inactive_threshold": 60_000_000_000},
    },
    {"name": "M", "subjects": ["m.>"], "max_consumers": 1},
)

E, A, N = {"ack_policy": "explicit"}, {"ack_policy": "all"}, {"ack_policy": "none"}
SECOND = 1_000_000_000
PUSH = {"deliver_subject": "d.x", **E}
START = "2024-01-01T00:00:00Z"

CASES: tuple[tuple[str, Values], ...] = (
    ("S.plain", E),
    ("S.plain", E),
    ("S.dur", {"durable_name": "dur", **E}),
    ("S.dur", {"durable_name": "dur", **E, "ack_wait": 5 * SECOND, "description": "x"}),
    ("S.dur", {"durable_name": "dur", **A}),
    ("S.dur", {"durable_name": "dur", **E, "deliver_policy": "new"}),
    ("S.dur", {"durable_name": "dur", **E, "deliver_subject": "d.y"}),
    ("S.dur", {"durable_name": "dur", **E, "max_waiting": 3}),
    ("S.dur", {"durable_name": "dur", **E, "replay_policy": "original"}),
    ("S.dur", {"durable_name": "other", **E}),
    ("S.none", N),
    ("S.all", A),
    ("S.n1", {**E, "max_deliver": -7, "max_ack_pending": -5, "inactive_threshold": -1}),
    ("S.n2", {**E, "max_batch": -1, "max_expires": -1, "max_bytes": -1, "max_waiting": -1}),
    ("S.n3", {**E, "ack_wait": -1}),
    ("S.n4", {**E, "backoff": [SECOND, 2 * SECOND]}),
    ("S.n5", {**E, "backoff": [SECOND, 2 * SECOND], "max_deliver": 1}),
    ("S.n6", {**E, "backoff": [-1]}),
    ("S.f1", {**E, "filter_subject": "s.a"}),
    ("S.f2.s.a", {**E, "filter_subject": "s.a"}),
    ("S.f3.s.b", {**E, "filter_subject": "s.a"}),
    ("S.f4.s.b", {**E, "filter_subjects": ["s.b"]}),
    ("S.f5", {**E, "filter_subjects": ["s.b", "s.*"]}),
    ("S.f6", {**E, "filter_subjects": ["s.b", "s.c"]}),
    ("S.f7", {**E, "filter_subjects": ["s.b", ""]}),
    ("S.f8", {**E, "filter_subject": "s.a", "filter_subjects": ["s.b"]}),
    ("S.f9", {**E, "filter_subject": "s..a"}),
    ("S.f10", {**E, "filter_subject": "elsewhere"}),
    ("S.d1", {**E, "deliver_policy": "by_start_sequence"}),
    ("S.d2", {**E, "deliver_policy": "by_start_time"}),
    ("S.d3", {**E, "deliver_policy": "last_per_subject"}),
    ("S.d4", {**E, "opt_start_seq": 5}),
    ("S.d5", {**E, "deliver_policy": "new", "opt_start_time": START}),
    ("S.d6", {**E, "deliver_policy": "by_start_time", "opt_start_time": START}),
    ("S.d7", {**E, "deliver_policy": "by_start_sequence", "opt_start_seq": 9}),
    ("S.d8", {**E, "deliver_policy": "last", "opt_start_seq": 9}),
    ("S.d9", {**E, "deliver_policy": "by_start_time", "opt_start_time": START, "opt_start_seq": 1}),
    ("S.p1", PUSH),
    ("S.p2", {**PUSH, "deliver_subject": "d.*"}),
    ("S.p3", {**PUSH, "deliver_subject": "s.x"}),
    ("S.p4", {**PUSH, "deliver_subject": "d..x"}),
    ("S.p5", {**PUSH, "max_waiting": 5}),
    ("S.p6", {**PUSH, **N, "max_ack_pending": 5}),
    ("S.p7", {**PUSH, "idle_heartbeat": 1000}),
    ("S.p8", {**PUSH, "flow_control": True}),
    ("S.p9", {**PUSH, "flow_control": True, "idle_heartbeat": SECOND, "deliver_group": "g"}),
    ("S.p10", {**PUSH, "rate_limit_bps": 8000}),
    ("S.p11", {**PUSH, "priority_policy": "overflow", "priority_groups": ["g"]}),
    ("S.p12", {**PUSH, "ack_policy": "flow_control", "max_ack_pending": 10}),
    ("S.p13", {**PUSH, "ack_policy": "flow_control", "max_ack_pending": 10, "ack_wait": SECOND}),
    ("S.p14", {**PUSH, "ack_policy": "flow_control", "max_deliver": 4}),
    ("S.p1", {**PUSH, "idle_heartbeat": SECOND}),
    ("S.p1", {**PUSH, "deliver_subject": "d.other"}),
    ("S.q1", {**E, "rate_limit_bps": 8000}),
    ("S.q2", {**E, "idle_heartbeat": SECOND}),
    ("S.q3", {**E, "flow_control": True}),
    ("S.q4", {**E, "max_expires": 1000}),
    ("S.q5", {**E, "ack_policy": "flow_control"}),
    ("S.q6", {**E, "direct": True}),
    ("S.g1", {**E, "priority_policy": "overflow"}),
    ("S.g2", {**E, "priority_policy": "overflow", "priority_groups": [""]}),
    ("S.g3", {**E, "priority_policy": "overflow", "priority_groups": ["a b"]}),
    ("S.g4", {**E, "priority_groups": ["a"]}),
    ("S.g5", {**E, "priority_timeout": SECOND}),
    ("S.g6", {**E, "priority_policy": "pinned_client", "priority_groups": ["a"]}),
    ("S.g7", {**E, "priority_policy": "prioritized", "priority_groups": ["a"]}),
    ("S.s1", {**E, "sample_freq": "50%"}),
    ("S.s2", {**E, "sample_freq": "x"}),
    ("S.s3", {**E, "description": "d" * 5000}),
    ("S.s4", {**E, "metadata": {"k": "v" * 140_000}}),
    ("S.s5", {**E, "metadata": {"k": "v"}}),
    ("S.s6", {**E, "num_replicas": 3}),
    ("S.s7", {**E, "num_replicas": -1}),
    ("S.s8", {**E, "bogus": 1}),
    ("S.s9", {**E, "pause_until": START}),
    ("S.s10", {**E, "name": "unlike", "mem_storage": True}),
    ("NOPE.x", E),
    ("W.a", N),
    ("W.b", {**A, "deliver_subject": "d.w"}),
    ("W.c", {**E, "deliver_policy": "new"}),
    ("W.d", {**E, "filter_subject": "w.a"}),
    ("W.e", E),
    ("W.f", {**E, "filter_subject": "w.*"}),
    ("W.g", {**E, "filter_subject": "w.b"}),
    ("W.g", {**E, "filter_subject": "w.>"}),
    ("I.a", E),
    ("I.b", {**E, "num_replicas": 2}),
    ("L.a", E),
    ("L.b", {**E, "max_ack_pending": 51}),
    ("L.c", {**E, "inactive_threshold": 61 * SECOND}),
    ("M.a", E),
    ("M.b", E),
    ("M.a", {**E, "ack_wait": SECOND}),
    ("DURABLE S.x", {"durable_name": "x", **E}),
    ("DURABLE S.y", E),
    ("DURABLE S.y", {"durable_name": "z", **E}),
    ("LEGACY S", {"durable_name": "z", **E}),
    ("LEGACY S", {"name": "leg", **E}),
    ("create S.plain", {**E, "ack_wait": SECOND}),
    ("create S.dur", {"durable_name": "dur", **E, "ack_wait": 5 * SECOND, "description": "x"}),
    ("update S.nobody", E),
    ("update S.plain", {**E, "ack_wait": SECOND}),
    ("pedantic S.ped", {**E, "max_deliver": -3}),
    ("pedantic S.ped", {**E, "max_batch": -3}),
    ("pedantic L.ped", E),
)


def subject_of(where: str) -> tuple[bytes, dict[str, object]]:
    how, _, names = where.rpartition(" ")
    extra: dict[str, object] = {}
    words = "CONSUMER.DURABLE.CREATE" if how == "DURABLE" else "CONSUMER.CREATE"
    if how in ("create", "update"):
        extra["action"] = how
    if how == "pedantic":
        extra["pedantic"] = True
    return f"$JS.API.{words}.{names}".encode(), extra


def decided(broker: OneBroker, subject: bytes, payload: bytes) -> dict[str, object]:
    """What this broker answers, as far as it is decided at once: error or config."""
    call = parse_api(subject)
    assert call is not None
    decision = handle(as_view(broker), request_of(subject, payload), call)
    if isinstance(decision, Reply):
        answer = json.loads(decision.payload)
        return {"error": answer["error"]}
    assert isinstance(decision, ProposeMeta)
    broker.carry_out(decision)
    made = next(change.after for change in reversed(broker.meta.take_changes()) if change.consumer)
    assert made is not None
    return {"config": encode(shown_config(made.config))}  # type: ignore[arg-type]  # a consumer


async def test_creates_and_updates_are_decided_like_by_the_real_server(tmp_path: Path) -> None:
    broker = OneBroker()
    told: list[tuple[str, object, object]] = []
    with real_server(tmp_path) as url:
        client = await nats.connect(url)
        for values in STREAMS:
            subject = f"$JS.API.STREAM.CREATE.{values['name']}"
            answer = await client.request(subject, json.dumps(values).encode())
            config = json.loads(answer.data)["config"]
            broker.add_stream(decode(StreamConfig, config))
        for where, case in CASES:
            subject_bytes, extra = subject_of(where)
            stream = where.rpartition(" ")[2].split(".")[0]
            payload = json.dumps({"stream_name": stream, "config": dict(case), **extra}).encode()
            reply = await client.request(subject_bytes.decode(), payload, timeout=5)
            real = json.loads(reply.data)
            kept = {key: real[key] for key in ("error", "config") if key in real}
            told.append((f"{where} {case}", decided(broker, subject_bytes, payload), kept))
        await client.close()
    assert broker.meta.consumers(ACCOUNT, "S")
    different = [(what, mine, real) for what, mine, real in told if mine != real]
    assert not different, "\n".join(f"{w}\n  {m}\n  {r}" for w, m, r in different)
