"""One origin as its reader sees it: what is asked, what is missed, what is answered."""

import json
from typing import Any

import pytest

from jsctl.api.stream import (
    ExternalStream,
    StreamConfig,
    StreamConsumerSource,
    StreamSource,
    SubjectTransform,
)
from jsctl.api.times import SECOND_NS
from jsctl.broker.jetstream.sourcing.asking import Metadata, Request, Start
from jsctl.broker.jetstream.sourcing.origin import sources_of
from jsctl.broker.jetstream.sourcing.upstream import (
    ANSWER_NS,
    BACKOFF_NS,
    QUEUE_BYTES_MAX,
    RETRY_NS,
    SILENT_NS,
    Phase,
    Upstream,
)
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.protocol import headers as blocks
from jsctl.dataclass import replace

WHO = Metadata("S", "A", "D")
NOTHING = SourcePosition(0, "")
FLOW = b"NATS/1.0 100 FlowControl Request\r\n\r\n"


class Play:
    """A source of the stream O, a clock, and the answers of its origin."""

    def __init__(self, position: SourcePosition = NOTHING, **more: Any) -> None:
        declared = StreamSource(name="O", **more)
        (origin,) = sources_of("A", StreamConfig(name="S", sources=(declared,)), "D")
        self.now_ns = 100 * SECOND_NS
        self.upstream = Upstream(origin, position, WHO, self.now_ns)

    def ask(self, start: Start | None = None) -> dict[str, Any]:
        request = self.request(start)
        config: dict[str, Any] = json.loads(request.payload)["config"]
        return config

    def request(self, start: Start | None = None) -> Request:
        assert self.upstream.wants_to_ask(self.now_ns)
        return self.upstream.ask(start or Start(), b"$JS.S.x", "nonce", self.now_ns)

    def grant(self, delivered: int = 0, identity: str = "I", name: str = "C") -> None:
        position = {"consumer_seq": 0, "stream_seq": delivered}
        info = {"name": name, "config": {"ack_policy": "none"}}
        body = {**info, "delivered": position, "ack_floor": position}
        head = blocks.build([(b"Nats-Stream-Identity", identity.encode())])
        self.upstream.answered(head, json.dumps(body).encode(), self.now_ns)

    def refuse(self, err_code: int, code: int = 400) -> None:
        error = {"code": code, "err_code": err_code, "description": "no"}
        self.upstream.answered(b"", json.dumps({"error": error}).encode(), self.now_ns)

    def deliver(self, seq: int, number: int, *, name: str = "C", pending: int = 0) -> None:
        reply = f"$JS.ACK.O.{name}.1.{seq}.{number}.1790000002000000000.{pending}".encode()
        self.upstream.take([(b"o.%d" % seq, reply, b"", b"x", None)], self.now_ns)

    def control(self, reply: bytes, headers: bytes) -> None:
        self.upstream.take([(b"$JS.S.x", reply, headers, b"", None)], self.now_ns)

    @property
    def error_code(self) -> int:
        error = self.upstream.error
        return 0 if error is None else error.err_code

    @property
    def due_ns(self) -> int:
        found = self.upstream.next_due_ns()
        assert found is not None
        return found

    @property
    def phase(self) -> Phase:
        return self.upstream.phase

    @property
    def queued(self) -> list[int]:
        return [one.seq for one in self.upstream.queue]


def test_what_is_asked_for() -> None:
    play = Play()
    request = play.request(Start(7))
    assert request.subject == b"$JS.API.CONSUMER.CREATE.O"
    assert request.headers == b"NATS/1.0\r\nNats-Required-Api-Level: 5\r\n\r\n"
    body = json.loads(request.payload)
    assert body["stream_name"] == "O"
    config = body["config"]
    assert config.pop("name").startswith("JS_SRC_")
    assert config == {
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": 7,
        "ack_policy": "none",
        "ack_wait": 22 * 3600 * SECOND_NS,
        "max_deliver": 1,
        "replay_policy": "instant",
        "flow_control": True,
        "deliver_subject": "$JS.S.x",
        "idle_heartbeat": SECOND_NS,
        "inactive_threshold": 10 * SECOND_NS,
        "num_replicas": 0,
        "direct": True,
        "sourcing": True,
        "metadata": {"_nats.src.stream": "S", "_nats.src.acc": "A", "_nats.src.domain": "D"},
    }


def test_what_is_known_counts_more_than_where_to_start() -> None:
    play = Play(SourcePosition(41, "I"))
    request = play.request(Start(7, "2020-01-01T00:00:00Z"))
    assert json.loads(request.payload)["config"]["opt_start_seq"] == 42
    assert b"Nats-Stream-Identity: I\r\n" in request.headers
    assert Play().ask(Start(0, "2020-01-01T00:00:00Z"))["deliver_policy"] == "by_start_time"


def test_a_single_filter_is_part_of_the_subject() -> None:
    play = Play(filter_subject="o.1", external=ExternalStream(api="X.API.", deliver="d"))
    request = play.request()
    name = play.upstream.origin.consumer
    assert request.subject == f"X.API.CONSUMER.CREATE.O.{name}.o.1".encode()
    assert play.upstream.origin.deliver_subject("abc") == b"d.S.abc"
    several = Play(
        subject_transforms=(SubjectTransform(src="a", dest="b"), SubjectTransform(src="c"))
    )
    assert several.ask()["filter_subjects"] == ["a", "c"]
    assert [several.upstream.origin.stored_as(one) for one in (b"a", b"c")] == [b"b", b"c"]


def test_a_server_that_knows_less_is_asked_for_less() -> None:
    play = Play()
    levels = []
    for _ in range(2):
        levels.append(play.request().headers)
        play.refuse(10185, 412)
    config = play.ask()
    assert [b"Level: 5" in levels[0], b"Level: 4" in levels[1]] == [True, True]
    assert "sourcing" not in config and config["name"].endswith("_nonce")
    play.refuse(10185, 412)
    assert not play.upstream.wants_to_ask(play.now_ns), "there is nothing less"


def test_a_hole_in_the_numbers_has_the_rest_asked_for_anew() -> None:
    play = Play()
    play.ask()
    play.grant()
    play.deliver(3, 1)
    play.deliver(8, 2)
    play.deliver(9, 4)
    assert play.queued == [3, 8], "holes in the sequences are the origin's"
    assert not play.upstream.wants_to_ask(play.now_ns), "not so soon after the last time"
    play.now_ns += RETRY_NS
    assert play.ask()["opt_start_seq"] == 9
    play.grant(8, name="D")
    play.deliver(9, 5, name="C")
    play.deliver(9, 1, name="D")
    assert play.queued == [3, 8, 9], "the old consumer is not heard any more"


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"$JS.ACK.O.C.1.1.1.77",
        b"$JS.ACK.O.C.1.x.1.77.0",
        b"$JS.ACK.O.C.1.%b.1.77.0" % (b"9" * 40),
        b"$JS.ACK.O.C.1.1.1.9999999999999999999.0",
        b"$JS.ACK.O.D.1.1.1.77.0",
        b"$JS.ACK.O.C.2.1.1.77.0",
    ],
    ids=["none", "short", "no number", "too large", "too late", "another consumer", "once more"],
)
def test_what_is_no_delivery_is_passed_over(reply: bytes) -> None:
    play = Play()
    play.ask()
    play.grant()
    play.upstream.take([(b"o", reply, b"", b"x", None)], play.now_ns)
    assert play.queued == []
    play.deliver(1, 1)
    assert play.queued == [1]


CONFIGURED = b'{"name":"C","config":{},'


@pytest.mark.parametrize("headers", [b"", b"NATS/1.0 " + b"9" * 5_000 + b"\r\n\r\n"])
@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"[]", b"{}", b'{"name": 5}', b'{"name":"C","config":[]}'),
        b'{"name":5,"config":{}}',
        CONFIGURED + b'"delivered":{"stream_seq":"x"}}',
        CONFIGURED + b'"ack_floor":{"stream_seq":[]}}',
    ],
)
def test_answers_that_say_nothing_are_failures(answer: bytes, headers: bytes) -> None:
    play = Play()
    for _ in range(3):  # as a server that does not know the levels of the API
        if play.upstream.wants_to_ask(play.now_ns):
            play.ask()
            play.upstream.answered(headers, answer, play.now_ns)
    assert play.error_code and not play.upstream.wants_to_ask(play.now_ns)


def test_heartbeats_tell_what_is_missing() -> None:
    play = Play()
    play.ask()
    play.grant()
    play.deliver(1, 1)
    beat = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: %d\r\nNats-Last-Stream: 9\r\n\r\n"
    phases = []
    for number in (1, 2):
        play.control(b"", beat % number)
        phases.append(play.phase)
    assert phases == [Phase.MESSAGES, Phase.TIME]


def test_silence() -> None:
    play = Play()
    play.ask()
    play.now_ns += ANSWER_NS
    play.upstream.tick(play.now_ns)
    assert play.error_code == 10008
    play.ask()
    play.grant()
    assert not play.error_code
    play.now_ns += SILENT_NS + 1
    play.upstream.tick(play.now_ns)
    play.ask()


def test_who_is_refused_waits_longer_each_time() -> None:
    play = Play()
    waits = []
    for _ in range(3):
        play.ask()
        play.refuse(10059, 404)
        due_ns = play.due_ns
        waits.append(due_ns - play.now_ns - RETRY_NS)
        play.now_ns = due_ns
    assert waits == [BACKOFF_NS, 2 * BACKOFF_NS, 3 * BACKOFF_NS]
    play.ask()
    play.refuse(10008, 503)
    assert play.due_ns == play.now_ns + RETRY_NS, "it will be back soon"


def test_another_stream_of_the_same_name() -> None:
    play = Play(SourcePosition(41, "I"))
    play.ask()
    play.refuse(10225)
    play.now_ns += RETRY_NS
    assert "opt_start_seq" not in play.ask()
    play.grant(identity="J")
    play.deliver(1, 1)
    (made,) = play.upstream.queue
    assert (made.seq, made.identity) == (1, "J")
    assert made.headers.endswith(b"Nats-Stream-Source: O 1 > > o.1 J\r\n\r\n")


def test_flow_control_is_answered_when_all_before_it_is_durable() -> None:
    play = Play()
    play.ask()
    play.grant()
    play.deliver(1, 1)
    play.deliver(2, 2)
    play.control(b"$JS.FC.O.C.1", FLOW)
    stalled = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Consumer-Stalled: $JS.FC.O.C.1\r\n\r\n"
    play.control(b"", stalled)
    upstream = play.upstream
    assert upstream.answers_to_flow(SourcePosition(1, "I")) == []
    ((to, head),) = upstream.answers_to_flow(SourcePosition(2, "I"))
    assert (to, blocks.get(head, b"Nats-Last-Stream")) == (b"$JS.FC.O.C.1", b"2")
    assert blocks.get(head, b"Nats-Last-Consumer") == b"2"
    play.control(b"", stalled)
    assert len(upstream.answers_to_flow(SourcePosition(2, "I"))) == 1, "it did not arrive"


@pytest.mark.parametrize("durable", [NOTHING, SourcePosition(0, "I"), SourcePosition(41, "H")])
def test_flow_control_waits_for_the_first_message_of_a_stream(durable: SourcePosition) -> None:
    """Nothing of it is durable, as the position is still none, or that of an earlier stream."""
    play = Play(durable)
    play.ask()
    play.grant(identity="I")
    play.control(b"$JS.FC.O.C.0", FLOW)
    assert len(play.upstream.answers_to_flow(durable)) == 1, "nothing came before it"
    play.deliver(1, 1)
    play.control(b"$JS.FC.O.C.1", FLOW)
    assert play.upstream.answers_to_flow(durable) == []
    assert len(play.upstream.answers_to_flow(SourcePosition(1, "I"))) == 1


def test_flow_control_of_an_origin_that_does_not_tell_who_it_is_any_more() -> None:
    play = Play(SourcePosition(1, "I"))
    play.ask()
    play.grant(delivered=1, identity="")
    play.deliver(2, 1)
    play.control(b"$JS.FC.O.C.1", FLOW)
    assert play.upstream.answers_to_flow(SourcePosition(1, "I")) == []
    assert len(play.upstream.answers_to_flow(SourcePosition(2, ""))) == 1


def test_flow_control_is_answered_on_subjects_only() -> None:
    play = Play()
    play.ask()
    play.grant()
    play.control(b"", b"NATS/1.0 100 Idle Heartbeat\r\nNats-Consumer-Stalled: a 1 5\r\n\r\n")
    assert play.upstream.answers_to_flow(NOTHING) == []


def test_an_origin_that_does_not_keep_to_flow_control_is_asked_later() -> None:
    play = Play()
    play.ask()
    play.grant()
    upstream, payload = play.upstream, bytes(1 << 20)
    for seq in range(1, 200):
        reply = b"$JS.ACK.O.C.1.%d.%d.77.0" % (seq, seq)
        upstream.take([(b"o", reply, b"", payload, None)], play.now_ns)
    assert upstream.queue_bytes < QUEUE_BYTES_MAX + (2 << 20)
    play.now_ns += RETRY_NS
    assert not upstream.wants_to_ask(play.now_ns)
    upstream.taken(len(upstream.queue) - 1)
    assert play.ask()["opt_start_seq"] == upstream.queue[0].seq + 1


def test_a_consumer_that_somebody_made_begins_again() -> None:
    source = {"name": "K", "deliver_subject": "to.me"}
    play = Play(consumer=StreamConsumerSource(**source))
    request = play.request()
    assert request.subject == b"$JS.API.CONSUMER.RESET.O.K"
    assert play.upstream.origin.deliver_subject("x") == b"to.me"
    play.grant()
    assert play.error_code == 10217


def test_another_consumer_begins_behind_what_is_durable() -> None:
    """Its origin may let go of what is before it; what has come is known all the same."""
    play = Play()
    play.ask()
    play.grant()
    for number in (1, 2, 3):
        play.deliver(number, number)
    upstream = play.upstream
    origin = replace(upstream.origin, consumer="X")
    upstream.read_by(origin, SourcePosition(1, "I"), play.now_ns)
    config = play.ask()
    assert (config["name"], config["opt_start_seq"]) == ("X", 2)
    play.grant(1, name="D")
    for number, seq in enumerate((2, 3, 4), 1):
        play.deliver(seq, number, name="D")
    assert play.queued == [1, 2, 3, 4]
    upstream.read_by(origin, SourcePosition(7, "H"), play.now_ns)
    assert "opt_start_seq" not in play.ask(), "that is another stream"
