"""Consumer requests as decisions: peers, groups, lists, pause, reset, step-down, advisories."""

import json
from dataclasses import replace

import pytest

from jsctl.api.codec import decode
from jsctl.api.stream import StreamConfig
from jsctl.api.subjects import parse_api
from jsctl.broker.handlers.consumer_info import served_response
from jsctl.broker.handlers.consumers import handle
from jsctl.broker.handlers.decisions import (
    Decision,
    Gather,
    ProposeGroup,
    ProposeMeta,
    Reply,
    Silent,
    StepDown,
)
from jsctl.broker.jetstream.consumers.advisories import advisory_message
from jsctl.broker.jetstream.consumers.entries import decode_reset
from jsctl.broker.jetstream.consumers.facts import Advisory, AdvisoryKind
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from tests.support.consumer_play import Play
from tests.support.consumer_view import ACCOUNT, OneBroker, as_view, request_of

PEERS = ("PEER1", "PEER2", "PEER3", "PEER4", "PEER5")


def ask(broker: OneBroker, subject: str, body: object = None, account: str = ACCOUNT) -> Decision:
    text = b"" if body is None else json.dumps(body).encode()
    call = parse_api(f"$JS.API.CONSUMER.{subject}".encode())
    assert call is not None
    request = replace(request_of(f"$JS.API.CONSUMER.{subject}".encode(), text), account=account)
    decision = handle(as_view(broker), request, call)
    broker.carry_out(decision)
    return decision


def err(decision: Decision) -> int:
    assert isinstance(decision, Reply), decision
    code: int = json.loads(decision.payload)["error"]["err_code"]
    return code


def told(decision: Decision) -> dict[str, object]:
    assert isinstance(decision, Reply | ProposeMeta), decision
    text = decision.payload if isinstance(decision, Reply) else decision.reply
    assert text is not None
    made: dict[str, object] = json.loads(text)
    assert "error" not in made
    return made


def cluster(replicas: int, **values: object) -> OneBroker:
    broker = OneBroker(clustered=True, peers=PEERS, me="PEER1")
    config = decode(StreamConfig, {"name": "S", "num_replicas": replicas, **values})
    broker.add_stream(config, *PEERS[:replicas])
    return broker


def create(broker: OneBroker, name: str, **values: object) -> Decision:
    config = {"ack_policy": "explicit", **values}
    return ask(broker, f"CREATE.S.{name}", {"stream_name": "S", "config": config})


def assigned(broker: OneBroker, name: str) -> ConsumerAssignment:
    made = broker.meta.consumer(ACCOUNT, "S", name)
    assert made is not None
    return made


def lead(broker: OneBroker, name: str, script: str) -> Play:
    """Let this server lead a consumer that went through a script."""
    play = Play()
    play.run(script)
    broker.consumers[name] = play.consumer
    broker.leaders[name] = play.leader
    broker.now_ns = play.now
    return play


@pytest.mark.parametrize(
    ("stream", "config", "peers", "name"),
    [
        ({}, {"durable_name": "c"}, 3, "C-R3F-"),
        ({}, {}, 1, "C-R1F-"),
        ({"storage": "memory"}, {}, 1, "C-R1M-"),
        ({}, {"num_replicas": 2, "mem_storage": True}, 2, "C-R2M-"),
        ({"retention": "interest"}, {}, 3, "C-R3F-"),
        ({"retention": "workqueue"}, {}, 3, "C-R3F-"),
    ],
)
def test_peers_come_from_the_stream(
    stream: dict[str, object], config: dict[str, object], peers: int, name: str
) -> None:
    broker = cluster(3, **stream)
    assert isinstance(create(broker, "c", **config), ProposeMeta)
    group = assigned(broker, "c").group
    assert len(group.peers) == peers and set(group.peers) <= set(PEERS[:3])
    assert group.name.startswith(name)
    assert group.preferred in group.peers


def test_offline_peers_are_avoided_and_a_quorum_is_needed() -> None:
    broker = cluster(3)
    broker.offline = {"PEER1"}
    create(broker, "one")
    assert assigned(broker, "one").group.peers == ("PEER2",)
    create(broker, "three", durable_name="three")
    assert assigned(broker, "three").group.preferred != "PEER1"
    broker.offline = {"PEER1", "PEER2"}
    assert err(create(broker, "more", durable_name="more")) == 10023


def test_scaling_keeps_the_leader() -> None:
    broker = cluster(5)
    create(broker, "c", durable_name="c")
    broker.group_leader = "PEER4"
    create(broker, "c", durable_name="c", num_replicas=1)
    group = assigned(broker, "c").group
    assert group.peers == ("PEER4",)
    assert set(group.former) == set(PEERS) - {"PEER4"}
    create(broker, "c", durable_name="c", num_replicas=3)
    group = assigned(broker, "c").group
    assert len(group.peers) == 3 and group.peers[0] == "PEER4"


def test_unnamed_consumers_get_a_fresh_name_and_a_limit_holds() -> None:
    broker = cluster(1, max_consumers=2)
    for _ in range(2):
        made = ask(broker, "CREATE.S", {"stream_name": "S", "config": {"ack_policy": "none"}})
        assert isinstance(made, ProposeMeta) and made.reply is None
    assert list(broker.meta.consumers(ACCOUNT, "S")) == ["N0000001", "N0000003"]
    assert err(create(broker, "third")) == 10026


def test_names_and_lists_are_sorted_and_paged() -> None:
    broker = cluster(1)
    for name in ("b", "c", "a"):
        create(broker, name)
    assert told(ask(broker, "NAMES.S")) == {
        "type": "io.nats.jetstream.api.v1.consumer_names_response",
        "total": 3,
        "offset": 0,
        "limit": 1024,
        "consumers": ["a", "b", "c"],
    }
    assert told(ask(broker, "NAMES.S", {"offset": 2}))["consumers"] == ["c"]
    gather = ask(broker, "LIST.S", {"offset": 1})
    assert isinstance(gather, Gather)
    assert gather.assets == [("S", "b"), ("S", "c")]
    assert (gather.total, gather.offset) == (3, 1)
    assert err(ask(broker, "NAMES.T")) == 10059


def test_delete() -> None:
    broker = cluster(1)
    create(broker, "a")
    assert err(ask(broker, "DELETE.S.a", {"no": 1})) == 10038
    assert told(ask(broker, "DELETE.S.a"))["success"] is True
    assert err(ask(broker, "DELETE.S.a")) == 10014
    assert err(ask(broker, "DELETE.T.a")) == 10059


def test_pause_survives_an_update_and_ends_with_an_empty_request() -> None:
    broker = cluster(1)
    create(broker, "a")
    asked = ask(broker, "PAUSE.S.a", {"pause_until": "2023-11-14T22:14:20Z"})
    assert isinstance(asked, ProposeMeta) and asked.reply is None  # the leader answers
    assert assigned(broker, "a").request is not None
    create(broker, "a", description="later")
    assert assigned(broker, "a").config.pause_until == "2023-11-14T22:14:20Z"
    assert assigned(broker, "a").config.metadata["_nats.req.level"] == "1"
    ask(broker, "PAUSE.S.a")
    assert assigned(broker, "a").config.pause_until == ""
    assert assigned(broker, "a").config.metadata["_nats.req.level"] == "0"


def test_info_is_the_leaders_to_tell() -> None:
    broker = cluster(1)
    create(broker, "C")
    assert isinstance(ask(broker, "INFO.S.C"), Silent)
    script = 'publish a 3\nconsumer\npull in {"batch":5,"expires":1000}\nack 1'
    play = lead(broker, "C", script)
    info = told(ask(broker, "INFO.S.C"))
    assert info["num_ack_pending"] == 2 and info["num_waiting"] == 1
    assert info["ack_floor"] == {
        "consumer_seq": 1,
        "stream_seq": 1,
        "last_active": "2023-11-14T22:13:20Z",
    }
    request = assigned(broker, "C").request
    assert request is not None
    view = as_view(broker)
    created = json.loads(served_response(view, request, play.consumer, play.leader, None))
    assert created == {**info, "type": "io.nats.jetstream.api.v1.consumer_create_response"}
    assert err(ask(broker, "INFO.S.D")) == 10014


@pytest.mark.parametrize(
    ("config", "asked", "first"),
    [
        ("", {"seq": 2}, 2),
        ("", None, 2),
        ("deliver_policy=by_start_sequence opt_start_seq=2", {"seq": 1}, None),
        ("deliver_policy=by_start_sequence opt_start_seq=2", {"seq": 3}, 3),
        ("deliver_policy=new", {"seq": 3}, None),
    ],
)
def test_reset(config: str, asked: object, first: int | None) -> None:
    broker = cluster(1)
    create(broker, "C")
    play = lead(broker, "C", f"publish a 4\nconsumer {config}\npull in 1\nack 1")
    decision = ask(broker, "RESET.S.C", asked)
    if first is None:
        assert err(decision) == 10204
        return
    assert isinstance(decision, ProposeGroup)
    assert decode_reset(decision.entries[0]) == first
    started = play.consumer.apply(99, decision.entries[0])
    assert callable(decision.reply)
    assert json.loads(decision.reply(started))["reset_seq"] == first


def test_unpin() -> None:
    broker = cluster(1)
    policy = {"priority_policy": "pinned_client", "priority_groups": ["g"]}
    create(broker, "C", **policy)
    assert isinstance(ask(broker, "UNPIN.S.C", {"group": "g"}), Silent)
    play = lead(
        broker,
        "C",
        "publish a 4\nconsumer priority_policy=pinned_client priority_groups=g\n"
        'pull in {"batch":1,"group":"g","expires":1000}',
    )
    pin = play.leader.pull.pin if play.leader.pull is not None else ""
    groups = told(ask(broker, "INFO.S.C"))["priority_groups"]
    assert groups == [{"group": "g", "pinned_client_id": pin, "pinned_ts": "2023-11-14T22:13:20Z"}]
    assert err(ask(broker, "UNPIN.S.C", {"group": "h"})) == 10160
    assert err(ask(broker, "UNPIN.S.C", {"group": "h h"})) == 10162
    assert err(ask(broker, "UNPIN.S.C", {})) == 10025
    told(ask(broker, "UNPIN.S.C", {"group": "g"}))
    assert play.leader.pull is not None and not play.leader.pull.pin


def test_step_down_looks_for_peers_that_fit() -> None:
    broker = cluster(3)
    create(broker, "C", durable_name="C")
    assert isinstance(ask(broker, "LEADER.STEPDOWN.S.C"), Silent)
    lead(broker, "C", "consumer")
    anybody = ask(broker, "LEADER.STEPDOWN.S.C")
    assert isinstance(anybody, StepDown) and anybody.candidates == ["PEER2", "PEER3"]
    one = ask(broker, "LEADER.STEPDOWN.S.C", {"placement": {"preferred": "peer3"}})
    assert isinstance(one, StepDown) and one.candidates == ["PEER3"]
    nobody = ask(broker, "LEADER.STEPDOWN.S.C", {"placement": {"preferred": "peer9"}})
    assert err(nobody) == 10005
    broker.clustered = False
    assert err(ask(broker, "LEADER.STEPDOWN.S.C")) == 10010


@pytest.mark.parametrize("kind", AdvisoryKind)
def test_advisories_have_their_subject_and_type(kind: AdvisoryKind) -> None:
    fact = Advisory(kind, 7, 8, 2, "why", 5, "g", "PIN")
    subject, payload = advisory_message(
        fact, account="A", stream="S", consumer="C", domain="", event_id="ID", now_ns=1
    )
    assert subject == f"{kind.value}.S.C".encode()
    event = json.loads(payload)
    assert event["type"].startswith("io.nats.jetstream.")
    assert (event["id"], event["stream"], event["consumer"]) == ("ID", "S", "C")
    per_message = kind not in (AdvisoryKind.PINNED, AdvisoryKind.UNPINNED)
    assert event.get("stream_seq", 0) == (8 if per_message else 0)
