"""Direct get: what is not compared with the real server in `test_streams_live`."""

from jsctl.api.codec import dumps
from jsctl.api.times import format_time
from tests.support.jetstream_rig import Rig


def _rig() -> Rig:
    rig = Rig()
    rig.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"], "storage": "memory"})
    return rig


def test_times_are_in_the_headers_and_can_be_asked_for() -> None:
    rig = _rig()
    for at in range(4):
        rig.now_ns += 10**9
        rig.publish(f"s.{at}", b"x")
    ((headers, payload),) = rig.direct("S", b'{"seq":2}')
    stamp = format_time(rig.now_ns - 2 * 10**9)
    assert f"Nats-Time-Stamp: {stamp}\r\n\r\n".encode() in headers
    assert payload == b"x"
    found = rig.direct("S", dumps({"start_time": stamp, "batch": 9}))
    assert [b"Nats-Sequence: 2" in found[0][0], len(found)] == [True, 4]
    found = rig.direct("S", dumps({"multi_last": ["s.>"], "up_to_time": stamp}))
    assert len(found) == 2
    ((headers, _),) = rig.direct("S", dumps({"start_time": stamp}))
    assert b"Nats-Sequence: 2" in headers


def test_short_requests_and_long_ones_get_the_same() -> None:
    rig = _rig()
    rig.publish("s.a", b"x")
    rig.publish("s.a", b"y")
    for short, long in (
        (b'{"seq":2}', b'{ "seq" : 2 }'),
        (b'{"seq": 1}', b'{"no_hdr":false,"seq":1}'),
        (b'{"seq":3}', b'{"seq":3 }'),
        (b'{"seq":999999999999999999}', b' {"seq":999999999999999999}'),
    ):
        assert rig.direct("S", short) == rig.direct("S", long)
    assert rig.direct("S.s.a", b"") == rig.direct("S.s.a", b"{}") == rig.direct("S", b'{"seq":2}')
    assert rig.direct("S.s.b", b"") == rig.direct("S.s.b", b"{}")
    assert b"404" in rig.direct("S.s.b", b"")[0][0]
    for bad in (b'{"seq":0}', b'{"seq":02}', b'{"seq":-1}', b'{"seq":2}}', b"{}"):
        assert b"408" in rig.direct("S", bad)[0][0]


def test_own_headers_come_first() -> None:
    rig = _rig()
    rig.publish("s.a", b"x", b"NATS/1.0\r\nMine: 1\r\n\r\n")
    ((headers, _),) = rig.direct("S", b'{"seq":1}')
    assert headers.startswith(b"NATS/1.0\r\nMine: 1\r\nNats-Stream: S\r\n")
    assert headers.endswith(b"\r\n\r\n")


def test_batches_without_headers() -> None:
    rig = _rig()
    for text in (b"x", b"y", b"z"):
        rig.publish("s.a", text, b"NATS/1.0\r\nMine: 1\r\n\r\n")
    *found, (end, _) = rig.direct("S", b'{"seq":1,"batch":2,"no_hdr":true}')
    assert found == [(b"", b"x"), (b"", b"y")]
    assert end == b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 1\r\nNats-Last-Sequence: 2\r\n\r\n"


def test_last_messages_up_to_what_is_not_stored_yet() -> None:
    rig = _rig()
    rig.publish("s.a", b"x")
    (_, payload), (end, _) = rig.direct("S", b'{"multi_last":["s.a"],"up_to_seq":9}')
    assert payload == b"x" and b"Nats-UpTo-Sequence: 9\r\n" in end


def test_too_many_subjects_at_once() -> None:
    rig = _rig()
    for at in range(1025):
        rig.publish(f"s.{at}")
    ((headers, _),) = rig.direct("S", b'{"multi_last":["s.*"]}')
    assert headers == b"NATS/1.0 413 Too Many Results\r\n\r\n"
