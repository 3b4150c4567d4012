"""Header blocks and the lines that the server writes."""

from jsctl.broker.protocol import headers, writer

BLOCK = b"NATS/1.0\r\nA: 1\r\nNats-Msg-Id:  x y\r\nA: 2\r\n\r\n"
MSG, HMSG = b"MSG ", b"HMSG "


def test_lookup_is_exact_and_first_wins() -> None:
    assert headers.get(BLOCK, b"A") == b"1"
    assert headers.get(BLOCK, b"Nats-Msg-Id") == b"x y"
    assert headers.get(BLOCK, b"a") is None
    assert headers.get(BLOCK, b"Msg-Id") is None
    assert headers.get(BLOCK, b"none") is None
    assert headers.get(b"NATS/1.0\r\nA: 1", b"A") is None


def test_edits() -> None:
    assert headers.remove(BLOCK, b"A") == b"NATS/1.0\r\nNats-Msg-Id:  x y\r\n\r\n"
    assert headers.remove(headers.build([(b"A", b"1")]), b"A") == b""
    assert headers.append(b"", b"K", b"v") == headers.build([(b"K", b"v")])
    assert headers.set_value(BLOCK, b"A", b"3").endswith(b"x y\r\nA: 3\r\n\r\n")


def test_status() -> None:
    block = headers.build_status(404, b"No Messages", [(b"K", b"v")])
    assert block == b"NATS/1.0 404 No Messages\r\nK: v\r\n\r\n"
    assert headers.status(block) == (404, b"No Messages")
    assert headers.status(headers.build_status(503)) == (503, b"")
    assert headers.status(BLOCK) == (0, b"")


def test_lines() -> None:
    assert writer.info({"a": 1, "b": ["x"]}) == b'INFO {"a":1,"b":["x"]} \r\n'
    assert writer.connect({"a": True}) == b'CONNECT {"a":true}\r\n'
    assert writer.error(b"No") == b"-ERR 'No'\r\n"
    assert writer.message(MSG, b"s", b"1", b"", b"xy") == b"MSG s 1 2\r\nxy\r\n"
    assert writer.message(MSG, b"s", b"1", b"r", b"xy") == b"MSG s 1 r 2\r\nxy\r\n"
    assert writer.header_message(HMSG, b"s", b"1", b"", b"HH", b"x") == b"HMSG s 1 2 3\r\nHHx\r\n"
    assert (
        writer.header_message(HMSG, b"s", b"1", b"r", b"HH", b"x") == b"HMSG s 1 r 2 3\r\nHHx\r\n"
    )


def test_no_responders_has_the_size_of_the_real_one() -> None:
    line = writer.no_responders(b"req", b"7", b"inb")
    assert line == (b"HMSG inb 7 35 35\r\nNATS/1.0 503\r\nNats-Subject: req\r\n\r\n\r\n")
