"""What follows each other is taken at once: as if it had been taken one by one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jsctl.api.stream import ExternalStream, StreamConfig, StreamSource, SubjectTransform
from jsctl.api.times import SECOND_NS
from jsctl.broker.jetstream.sourcing import arrivals
from jsctl.broker.jetstream.sourcing.asking import Granted, Metadata, Start
from jsctl.broker.jetstream.sourcing.origin import UpstreamOrigin, mirror_of, sources_of
from jsctl.broker.jetstream.sourcing.upstream import Captured, Upstream
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.sequencer import Arrived
from tests.support.admission_rig import AdmissionRig

NOW_NS = 100 * SECOND_NS
SOURCE = StreamSource(
    name="O",
    subject_transforms=(SubjectTransform(src="o.*", dest="t.{{wildcard(1)}}"),),
    external=ExternalStream(api="X.API"),
)
HEADERS = (
    b"",
    b"NATS/1.0\r\n\r\n",
    b"NATS/1.0\r\nNats-Expected-Stream: O\r\n\r\n",
    b"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n",
    b"NATS/1.0\r\nNats-Stream-Source: P 1\r\nX: y\r\n\r\n",
)


class OneByOne(Upstream):
    """Takes nothing together."""

    def _follows(self, some: object, now_ns: int) -> bool:
        return False


def origin(*, mirror: bool) -> UpstreamOrigin:
    if mirror:
        found = mirror_of("A", StreamConfig(name="S", mirror=StreamSource(name="O")), "")
        assert found is not None
        return found
    return sources_of("A", StreamConfig(name="S", sources=(SOURCE,)), "")[0]


def reading(kind: type[Upstream], *, mirror: bool) -> Upstream:
    who = Metadata("S", "A", "")
    upstream = kind(origin(mirror=mirror), SourcePosition(0, ""), who, NOW_NS)
    upstream.ask(Start(), b"$JS.S.x", "nonce", NOW_NS)
    upstream._granted(Granted(b"C", 0, "I"), NOW_NS)
    return upstream


@st.composite
def deliveries(draw: st.DrawFn) -> list[Captured]:
    """Mostly as an origin sends them, with words of control and mistakes in between."""
    made: list[Captured] = []
    seq = number = 0
    form = draw(st.sampled_from(["$JS.ACK.O.%s", "$JS.ACK.dom.hash.O.%s"]))
    for _ in range(draw(st.integers(0, 12))):
        seq += draw(st.sampled_from([1, 1, 1, 1, 3]))
        number += 1
        mistake = draw(st.sampled_from([""] * 12 + ["again", "hole", "old", "strange", "control"]))
        if mistake == "control":
            made.append((b"$JS.S.x", b"$JS.FC.O.%d" % seq, b"NATS/1.0 100 Flow\r\n\r\n", b"", None))
        seq -= 2 * (mistake == "old")
        number += mistake == "hole"
        consumer = "D" if mistake == "strange" else "C"
        word = draw(st.sampled_from(["x", "", "1_0", "+4", " 5"])) if mistake == "strange" else seq
        again = 1 + (mistake == "again")
        tail = f"{consumer}.{again}.{word}.{number}.{NOW_NS + seq}.{draw(st.integers(0, 20))}"
        reply = form % tail + draw(st.sampled_from(["", "", "", ".token"])) * ("dom" in form)
        headers, payload = draw(st.sampled_from(HEADERS)), draw(st.binary(max_size=3))
        made.append((b"o.%d" % (seq % 3), reply.encode(), headers, payload, None))
    return made


def told(upstream: Upstream) -> dict[str, Any]:
    return {name: value for name, value in vars(upstream).items() if name != "origin"}


@given(st.data(), deliveries(), st.booleans())
def test_deliveries(data: st.DataObject, sent: list[Captured], mirror: bool) -> None:
    fast, slow = (reading(kind, mirror=mirror) for kind in (Upstream, OneByOne))
    rest = sent
    while rest:
        count = data.draw(st.integers(1, len(rest)))
        for one in (fast, slow):
            one.take(rest[:count], NOW_NS)
        rest = rest[count:]
        assert told(fast) == told(slow)
    assert fast.queue_bytes == arrivals.memory_of(fast.queue)
    fast.taken(len(fast.queue))
    assert fast.queue_bytes == 0


def test_what_an_origin_sends_is_taken_together() -> None:
    upstream = reading(Upstream, mirror=True)
    sent = [
        (b"o", b"$JS.ACK.O.C.1.%d.%d.77.%d" % (3 * n, n, 9 - n), b"", b"x", None)
        for n in range(1, 9)
    ]
    assert upstream._follows(sent, NOW_NS)
    assert [one.seq for one in upstream.queue] == [3 * n for n in range(1, 9)]
    assert upstream.lag == 0 and upstream.caught_up


@given(st.data(), st.booleans(), st.sampled_from([0, 40]))
def test_what_is_stored(data: st.DataObject, mirror: bool, size_max: int) -> None:
    fast, slow = (AdmissionRig(max_msg_size=size_max) for _ in range(2))
    slow.leader._short = False  # message by message
    seq = 0
    for _ in range(3):
        some: list[Arrived] = []
        for _ in range(data.draw(st.integers(0, 6))):
            seq += data.draw(st.sampled_from([1, 1, 2, 5, 0, -1]))
            headers = b"" if mirror else b"NATS/1.0\r\nNats-Stream-Source: O %d\r\n\r\n" % seq
            plain = data.draw(st.sampled_from([True] * 9 + [False]))
            if not plain:
                headers = b"NATS/1.0\r\nNats-Msg-Id: %d\r\n\r\n" % data.draw(st.integers(0, 2))
            payload = data.draw(st.sampled_from([b"", b"x", bytes(30), bytes(50)]))
            some.append((max(seq, 1), 5 + seq, b"s.%d" % (seq % 3), headers, payload, "I", plain))
        key = "" if mirror else "O > >"
        made = [rig.leader.admit_sourced(key, some, rig.now) for rig in (fast, slow)]
        (ours, count, error), (theirs, many, refusal) = made
        assert (ours.entries, count) == (theirs.entries, many)
        assert (error and error.err_code) == (refusal and refusal.err_code)
        for rig, admitted in ((fast, ours), (slow, theirs)):
            rig.propose(admitted)
            rig.settle()
        assert fast.stream.store.last_seq == slow.stream.store.last_seq
        assert fast.stream.positions == slow.stream.positions
    assert state_of(fast.leader) == state_of(slow.leader)


def state_of(leader: StreamLeader) -> tuple[object, ...]:
    sequencer = leader._sequencer
    return sequencer.next_seq, sequencer.last_id, len(leader.in_flight.batches)


def test_plain_messages_are_stored_together() -> None:
    rig = AdmissionRig()
    some: list[Arrived] = [(n, 7, b"s.a", b"", b"x", "", True) for n in (3, 4, 9)]
    building = rig.leader._begin_building()
    assert rig.leader._sequencer.fill(building, "", some, rig.now, 100)
    assert [row[0] for row in building.rows] == [3, 4, 9]
