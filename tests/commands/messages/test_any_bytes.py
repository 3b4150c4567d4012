"""Messages with bytes that are no text where text is expected: all commands show them and go on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.testing import Broker
from tests.commands.conftest import Run
from tests.commands.messages.test_message_commands import Background
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes
TITLE = b"NATS/1.0\r\n"
ODD = (
    (b"a", b"\xff\xfe", b""),
    (b"a", b"r\x0bt", b""),
    (b"r\x0ct", b"", b""),
    (b"\xff", b"", b""),
    (b"h", b"", TITLE + b"A: \xff\r\n\xfe: 1\r\nGr\xc3\xb6\xc3\x9fe: 2\r\n\r\n"),
    (b"h", b"", b"NATS/1.0 404 \xff\r\n\r\n"),
    (b"h", b"", b"NATS/1.0"),
    (b"h", b"", TITLE + b"no colon\r\n\r\n"),
)
"""Last tokens of subjects, replies and headers."""
LAST = b"the last one"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(jetstream=True) as running:
        yield running


def _publish(url: str, subject: bytes) -> None:
    wire = WireClient(url)
    for token, reply, headers in ODD:
        wire.publish(subject + token, b"body", reply, headers)
    wire.publish(subject + b"end", LAST)
    wire.flush()
    wire.close()


@pytest.mark.parametrize(
    "flags",
    [
        *("", "--raw", "--subjects-only", "--headers-only", "--translate cat", "--timestamp"),
        *("--dump -", "--dump {files}", "--report-subjects", "--backup {files}/b"),
        *("-o json", "-o jsonl", "-o csv", "-o yaml"),
    ],
)
def test_no_message_ends_who_listens(flags: str, broker: Broker, tmp_path: Path) -> None:
    words = ("sub", "odd.>", *flags.format(files=tmp_path).split(), "--count", str(len(ODD) + 1))
    listening = Background(broker.url, words, "")  # Some do not say when they listen.

    def published() -> bool:
        _publish(broker.url, b"odd.")
        return listening.ended

    try:
        wait_for(published, "all have come")
        done = listening.result()
    finally:
        listening.close()
    assert done.code == 0, done
    assert "Disconnected" not in done.err
    assert "Traceback" not in done.err


def test_subjects_are_shown_byte_by_byte(broker: Broker) -> None:
    listening = Background(broker.url, ("sub", "odd.>", "--count", str(len(ODD))), "Subscribing")
    try:
        _publish(broker.url, b"odd.")
        out = listening.result().out
    finally:
        listening.close()
    for shown in (r'"odd.a" with reply "\xff\xfe"', r'"r\vt"', r'"odd.r\ft"', r'"odd.\xff"'):
        assert f"{shown}\n" in out, out
    assert "Größe: 2\n" in out
    assert "Status: 404\n" in out


@pytest.mark.parametrize("words", ["reply q --echo", "reply q text"])
def test_answers_go_to_the_bytes_that_asked(words: str, broker: Broker) -> None:
    answering = Background(broker.url, (*words.split(), "--count", "2"), "Listening")
    headers = TITLE + b"A: \xff \r\n\xfe: 1\r\n"
    wire = WireClient(broker.url)
    try:
        for own, inbox in ((b"1", b"in.\xff"), (b"2", b"in.\x0b")):
            wire.send(b"SUB %b %b\r\n" % (inbox, own))
            wire.publish(b"q", b"asked", inbox, headers + b"\r\n")
            assert wire.await_messages(1, 30.0), inbox
            sid, subject, _, block, _ = wire.messages.pop()
            assert (sid, subject) == (own, inbox)
            assert "echo" not in words or block.startswith(headers), block
        assert answering.result().code == 0
    finally:
        answering.close()
        wire.close()


LINES = (
    *("stream get S 4", "stream get S 5", "stream get S 6 -j"),
    *("sub --stream S --terminate-at-end", "sub odd.> --all --terminate-at-end"),
    *("stream subjects S", "stream subjects S --names", "consumer next S C --count 9"),
    "stream backup S {files}/b",
)


@pytest.fixture(scope="module")
def stored(broker: Broker) -> Broker:
    """Has a stream of them."""
    wire = WireClient(broker.url)
    config = {"name": "S", "subjects": ["odd.>"], "storage": "memory", "allow_direct": True}
    answer = wire.request(b"$JS.API.STREAM.CREATE.S", json.dumps(config).encode())
    assert b'"error"' not in answer
    wire.close()
    _publish(broker.url, b"odd.")
    return broker


def test_what_is_stored_is_shown(stored: Broker, cli: Run, tmp_path: Path) -> None:
    at = ("--server", stored.url)
    assert cli(*at, "consumer", "add", "S", "C", "--pull", "--defaults").code == 0
    for line in LINES:
        found = cli(*at, *line.format(files=tmp_path).split())
        assert found.code == 0, (line, found)


def test_a_copy_has_the_same_bytes(stored: Broker, cli: Run) -> None:
    at = ("--server", stored.url)
    copied = cli(*at, "stream", "copy", "S", "T", "--data", "--prefix", "other")
    assert copied.code == 0, copied
    wire = WireClient(stored.url)
    for name in (b"S", b"T"):
        found = wire.answer(b"$JS.API.DIRECT.GET." + name, b'{"seq": 5}')
        assert found is not None
        assert found[3].startswith(ODD[4][2].removesuffix(b"\r\n")), found
    wire.close()


def test_broken_headers_cannot_be_got_directly(stored: Broker, cli: Run) -> None:
    words = ("sub", "--stream", "S", "--direct", "--terminate-at-end")
    found = cli("--server", stored.url, *words)
    assert found.code == 1
    assert "headers that cannot be read" in found.err, (found.out, found.err)
    assert "#6" in found.out


def test_objects_that_are_none_hide_no_other(broker: Broker, cli: Run, tmp_path: Path) -> None:
    at = ("--server", broker.url)
    assert cli(*at, "object", "add", "O").code == 0
    (tmp_path / "f").write_text("x")
    assert cli(*at, "object", "put", "O", str(tmp_path / "f"), "--name", "mine").code == 0
    wire = WireClient(broker.url)
    for token, body in ((b"\xff", b"{}"), (b"a", b'{"name": "\xff"}'), (b"b", b"[]")):
        wire.publish(b"$O.O.M." + token, body)
    wire.flush()
    wire.close()
    found = cli(*at, "object", "ls", "O", "-n")
    assert found.code == 0, found
    assert "mine" in found.out.splitlines()
