"""Whatever clients send to a consumer's leader, it stays well and its log stays readable."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.consumer_play import Play
from tests.support.quick import examples

NUMBERS = st.one_of(
    st.integers(-5, 12), st.sampled_from([1 << 63, 1 << 64, 10**30, -(1 << 70)])
).map(lambda n: str(n).encode())
TOKENS = st.one_of(NUMBERS, st.sampled_from([b"", b"x", b"\xff", b"1_0", b"*"]))
SUBJECTS = st.lists(TOKENS, min_size=0, max_size=7).map(
    lambda tokens: b".".join([b"$JS", b"ACK", b"S", b"C", *tokens])
)
WORDS = st.one_of(
    st.sampled_from(
        [
            b"",
            b"+ACK",
            b"-NAK",
            b"-NAK 99999999h",
            b"-NAK -5s",
            b'-NAK {"delay":1e300}',
            b'-NAK {"delay":99999999999999999999999}',
            b'-NAK {"delay":true}',
            b"-NAK [",
            b"-NAK " + b'{"a":' + b"[" * 100_000,
            b"+TERM \xff\xfe",
            b"+WPI",
            b"+NXT",
            b'+NXT {"batch":-1}',
            b"+NXT \xff",
        ]
    ),
    st.binary(max_size=8),
)
PULLS = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [
            b'{"batch":0}',
            b'{"batch":-5,"no_wait":true}',
            b'{"batch":99999999999999999999999}',
            b'{"batch":null,"expires":-1}',
            b'{"expires":9223372036854775807,"idle_heartbeat":-9}',
            b'{"max_bytes":-1,"batch":2}',
            b'{"group":7}',
            b'{"\xff":1}',
            b"[" * 100_000,
            b'{"a":' + b"[" * 100_000,
            b"9" * 4000,
            b"9" * 5000,
        ]
    ),
)


@settings(max_examples=examples(80), deadline=None)
@given(
    st.sampled_from(["explicit", "all", "none"]),
    st.lists(st.tuples(SUBJECTS, WORDS), max_size=6),
    st.lists(PULLS, max_size=4),
)
def test_strange_acks_and_pulls(
    policy: str, acks: list[tuple[bytes, bytes]], pulls: list[bytes]
) -> None:
    play = Play()
    play.run(f"publish a 6\nconsumer ack_policy={policy}\npull in 4")
    real = [(reply, b"r", b"", word, None) for reply in play.acks.values() for _, word in acks]
    strange = [(subject, b"r", b"", word, None) for subject, word in acks]
    requests = [(b"", b"in", b"", payload, None) for payload in pulls]
    play.turn(acks=strange + real[:8], pulls=requests)
    play.run("tick 40s\nstate")
    assert play.consumer.state.facts() == play.leader.delivery.progress.state.facts()
    assert play.consumer.state.floor_seq <= play.consumer.state.delivered_seq
