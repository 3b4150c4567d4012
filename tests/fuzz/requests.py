"""Requests of the JetStream and system API: subjects, bodies, and how they are made wrong."""

import json
import random

from tests.fuzz.mutate import TEXTS, broken, document

Body = dict[str, object] | None
PLACE = {"cluster": "C", "tags": ["a"]}
STREAM: dict[str, object] = {
    "name": "S", "subjects": ["s.>"], "retention": "limits", "max_msgs": -1, "max_bytes": -1,
    "max_age": 0, "max_msg_size": -1, "storage": "memory", "num_replicas": 1, "discard": "old",
    "duplicate_window": 120_000_000_000, "allow_direct": True, "max_msgs_per_subject": 5,
    "metadata": {"k": "v"}, "placement": PLACE, "republish": {"src": "s.>", "dest": "r.>"},
    "subject_transform": {"src": "s.*", "dest": "s.{{partition(3,1)}}"}, "compression": "none",
    "consumer_limits": {"max_ack_pending": 5}, "allow_msg_ttl": True, "first_seq": 1,
    "mirror": {"name": "M", "opt_start_seq": 1}, "sources": [{"name": "X"}], "sealed": False,
    "deny_delete": False, "allow_rollup_hdrs": True, "description": "d", "max_consumers": -1,
}  # fmt: skip
CONSUMER: dict[str, object] = {
    "stream_name": "S", "action": "create",
    "config": {
        "name": "C", "durable_name": "C", "ack_policy": "explicit", "deliver_policy": "all",
        "filter_subject": "s.a", "filter_subjects": ["s.a", "s.b"], "max_deliver": 5,
        "ack_wait": 10**9, "backoff": [10**9, 2 * 10**9], "max_ack_pending": 10, "opt_start_seq": 1,
        "opt_start_time": "2026-01-01T00:00:00Z", "replay_policy": "instant", "sample_freq": "5%",
        "deliver_subject": "d", "deliver_group": "g", "idle_heartbeat": 10**9, "num_replicas": 1,
        "flow_control": True, "inactive_threshold": 10**10, "metadata": {"k": "v"}, "max_batch": 5,
        "priority_groups": ["g"], "priority_policy": "overflow",
        "pause_until": "2030-01-01T00:00:00Z",
    },
}  # fmt: skip
PAGE: dict[str, object] = {"offset": 0, "limit": 5, "subject": "s.>"}
KNOWN: tuple[tuple[str, Body], ...] = (
    ("$JS.API.INFO", None),
    ("$JS.API.STREAM.CREATE.S", STREAM),
    ("$JS.API.STREAM.UPDATE.S", STREAM),
    ("$JS.API.STREAM.NAMES", PAGE),
    ("$JS.API.STREAM.LIST", PAGE),
    ("$JS.API.STREAM.INFO.S", {"subjects_filter": "s.>", "deleted_details": True, "offset": 0}),
    ("$JS.API.STREAM.DELETE.S", None),
    ("$JS.API.STREAM.PURGE.S", {"filter": "s.a", "seq": 5, "keep": 1}),
    ("$JS.API.STREAM.MSG.GET.S", {"seq": 1, "last_by_subj": "s.a", "next_by_subj": "s.>"}),
    ("$JS.API.STREAM.MSG.DELETE.S", {"seq": 1, "no_erase": True}),
    ("$JS.API.STREAM.SNAPSHOT.S", {"deliver_subject": "d", "chunk_size": 1000}),
    ("$JS.API.STREAM.RESTORE.S", {"config": STREAM, "state": {"messages": 5}}),
    ("$JS.API.STREAM.LEADER.STEPDOWN.S", {"placement": PLACE}),
    ("$JS.API.STREAM.PEER.REMOVE.S", {"peer": "n1"}),
    ("$JS.API.STREAM.CANCEL_MOVE.S", None),
    ("$JS.API.CONSUMER.CREATE.S", CONSUMER),
    ("$JS.API.CONSUMER.CREATE.S.C", CONSUMER),
    ("$JS.API.CONSUMER.CREATE.S.C.s.a", CONSUMER),
    ("$JS.API.CONSUMER.DURABLE.CREATE.S.C", CONSUMER),
    ("$JS.API.CONSUMER.NAMES.S", PAGE),
    ("$JS.API.CONSUMER.LIST.S", PAGE),
    ("$JS.API.CONSUMER.INFO.S.C", None),
    ("$JS.API.CONSUMER.DELETE.S.C", None),
    ("$JS.API.CONSUMER.PAUSE.S.C", {"pause_until": "2030-01-01T00:00:00Z"}),
    ("$JS.API.CONSUMER.RESET.S.C", {"seq": 1}),
    ("$JS.API.CONSUMER.UNPIN.S.C", {"group": "g"}),
    ("$JS.API.CONSUMER.LEADER.STEPDOWN.S.C", {"placement": PLACE}),
    ("$JS.API.CONSUMER.MSG.NEXT.S.C", {"batch": 5, "expires": 10**9, "no_wait": True}),
    ("$JS.API.CONSUMER.MSG.NEXT.KEPT.P", {"batch": 5, "max_bytes": 100, "idle_heartbeat": 10**9}),
    ("$JS.API.DIRECT.GET.KEPT", {"multi_last": ["kept.*"], "up_to_seq": 5, "batch": 5}),
    ("$JS.API.DIRECT.GET.KEPT", {"seq": 1, "next_by_subj": "kept.>", "max_bytes": 100}),
    ("$JS.API.DIRECT.GET.KEPT.kept.a", None),
    ("$JS.API.META.LEADER.STEPDOWN", {"placement": PLACE}),
    ("$JS.API.SERVER.REMOVE", {"peer": "n1", "peer_id": "x"}),
    ("$JS.API.ACCOUNT.PURGE.A", None),
    ("$JS.API.ACCOUNT.STREAM.MOVE.A.S", {"server": "n1", "cluster": "C", "tags": ["a"]}),
    ("$JS.ACK.KEPT.P.1.1.1.1.1", None),
    ("$JS.FC.KEPT.P.x", None),
    ("s.a", {"any": "message"}),
    ("kept.a", {"any": "message"}),
    *((f"$SYS.REQ.SERVER.PING.{what}", {"limit": 5, "offset": 0, "account": "A", "name": "n1"})
      for what in ("STATSZ", "VARZ", "CONNZ", "SUBSZ", "ROUTEZ", "JSZ", "ACCOUNTZ", "HEALTHZ",
                   "PROFILEZ", "EXPVARZ", "IPQUEUESZ", "RAFTZ", "GATEWAYZ", "LEAFZ", "IDZ")),
    ("$SYS.REQ.SERVER.PING", {"cluster": "C", "host": "h", "tags": ["a"], "exact_match": True}),
    ("$SYS.REQ.ACCOUNT.A.CONNZ", {"limit": 5, "subscriptions_detail": True, "cid": 1}),
    ("$SYS.REQ.ACCOUNT.A.SUBSZ", {"test": "a.b", "offset": 0}),
    ("$SYS.REQ.ACCOUNT.A.JSZ", {"streams": True, "consumer": True, "config": True}),
    ("$SYS.REQ.ACCOUNT.A.INFO", None),
    ("$SYS.REQ.ACCOUNT.PING.STATZ", {"accounts": ["A"], "include_unused": True}),
    ("$SYS.REQ.USER.INFO", None),
    ("$SYS.REQ.CLAIMS.LIST", None),
)  # fmt: skip
FIRST = (
    ("$JS.API.STREAM.CREATE.KEPT",
     b'{"name":"KEPT","subjects":["kept.>"],"storage":"memory","allow_direct":true,"max_msgs":50}'),
    ("$JS.API.CONSUMER.CREATE.KEPT.P",
     b'{"stream_name":"KEPT","config":{"name":"P","durable_name":"P","ack_policy":"explicit"}}'),
    ("kept.a", b"one"),
)  # fmt: skip
"""What is there before hostile requests come."""
WORDS = (
    b'"\\ud800"', b"null", b"-1", b"[]", b"{}", b'"*"', b'">"', b"9" * 5000, b"1e999", b"NaN",
    b".S", b".C", b".*", b".>", b"\x00", b"\xff", b"\xed\xa0\x80",
)  # fmt: skip


def made(rng: random.Random) -> bytes:
    """A request with something wrong in subject or body."""
    subject, known = KNOWN[int(rng.random() * len(KNOWN))]
    if rng.random() < 0.15:
        tokens = subject.split(".")
        text = rng.choice(TEXTS)
        tokens[int(rng.random() * len(tokens))] = text
        subject = ".".join(tokens)
    body = b"" if known is None else document(rng, _fewer(rng, known))
    if rng.random() < 0.1:
        body = document(rng, dict(STREAM))
    if rng.random() < 0.1:
        body = broken(rng, body or b"{}")
    return subject.encode("utf-8", "surrogatepass") + b"\n" + body


def _fewer(rng: random.Random, known: dict[str, object]) -> dict[str, object]:
    """Valid fields refuse each other: most of the time only some are there."""
    chance = rng.choice((0.15, 0.4, 1.0))
    kept = {
        key: _fewer(rng, item) if key == "config" and isinstance(item, dict) else item
        for key, item in known.items()
        if rng.random() < chance or key in ("name", "stream_name", "config", "ack_policy")
    }
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]
