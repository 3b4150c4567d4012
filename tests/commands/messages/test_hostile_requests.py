"""Requests to `reply` and `service serve` that are odd, and others behind them."""

import os
import sys
from pathlib import Path
from subprocess import PIPE, run

import pytest

from jsctl.client.headers import pairs_of
from jsctl.testing import Broker
from tests.commands.messages.test_message_commands import Background
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

PAYLOAD_BYTES_MAX = 1 << 20
ODD = (b"it's", b"a\0b")


@pytest.mark.processes
def test_an_answer_does_not_wait_for_the_command_of_the_next_request(tmp_path: Path) -> None:
    """Nor do the server's pings, which no answer for long is the end of the connection."""
    names = ("first", "second")
    for name in names:
        os.mkfifo(tmp_path / name)
    with Broker() as server:
        words = ("reply", "q", "--command", f"cat {tmp_path}/{{{{Request}}}}", "--count", "2")
        answering = Background(server.url, words, "Listening")
        wire = WireClient(server.url)
        try:
            wire.send(b"SUB answers 1\r\n")
            for name in names:
                wire.publish(b"q", name.encode(), b"answers")
            for name in names:
                (tmp_path / name).write_text(f"of the {name}")
                assert wire.await_messages(1, 30.0), f"the {name} is answered"
                assert wire.messages.pop()[4] == f"of the {name}".encode()
            assert answering.result().code == 0
        finally:
            wire.close()
            answering.close()


@pytest.mark.processes
@pytest.mark.parametrize("command", ["echo {{Request}}", "cat"])
def test_no_request_ends_who_answers(command: str) -> None:
    with Broker() as server:
        words = ("reply", "q", "--command", command, "--count", str(len(ODD) + 1))
        answering = Background(server.url, words, "Listening")
        try:
            for body in (*ODD, b"fine"):
                asked = [sys.executable, "-m", "jsctl", "-s", server.url, "request", "q", "--raw"]
                answer = run(asked, input=body, stdout=PIPE, timeout=60, check=True).stdout
                assert answer.strip(), body
            assert answer.strip() == b"fine"
            done = answering.result()
        finally:
            answering.close()
    assert done.code == 0
    assert "Traceback" not in done.err


@pytest.mark.processes
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("<{{Request}}>",), b"<\xff\xfe>"),
        (("--command", "printf %s {{Request}}"), b"\xff\xfe"),
        (
            ("--command", "/none/{{Request}}"),
            b"could not run /none/\xff\xfe: No such file or directory",
        ),
    ],
)
def test_a_request_that_is_no_text_is_filled_in_as_it_is(
    words: tuple[str, ...], answer: bytes
) -> None:
    with Broker() as server:
        answering = Background(server.url, ("reply", "q", *words, "--count", "1"), "Listening")
        wire = WireClient(server.url)
        try:
            assert wire.request(b"q", b"\xff\xfe") == answer
            assert answering.result().code == 0
        finally:
            wire.close()
            answering.close()


TWICE = b"NATS/1.0\r\nA: 1\r\nA: 2\r\nHandler: me\r\nL: a\nb\r\n\r\n"
VALUES = [("A", "1"), ("A", "2"), ("Handler", "me"), ("L", "a b")]


def _headers(wire: WireClient, subject: bytes, body: bytes = b"x") -> list[tuple[str, str]]:
    """Of the answer, or of the server where nobody answers."""
    found = wire.answer(subject, body, headers=TWICE)
    assert found is not None
    return list(pairs_of(found[3]))


@pytest.mark.processes
def test_an_echo_has_all_values_of_a_header_behind_its_own() -> None:
    with Broker() as server:
        words = ("reply", "q", "--echo", "-H", "Handler:own", "--count", "1")
        answering = Background(server.url, words, "Listening")
        wire = WireClient(server.url)
        try:
            found = _headers(wire, b"q")
            done = answering.result()
        finally:
            wire.close()
            answering.close()
    assert done.code == 0 and r"L: a\nb" in done.err
    assert found == [("Handler", "own"), *VALUES, ("NATS-Reply-Counter", "0")]


@pytest.mark.processes
def test_a_service_says_who_it_is_whatever_is_asked() -> None:
    """A header of the request took the place of its own, and hid which of the servers answered."""
    with Broker() as server:
        serving = Background(server.url, ("service", "serve", "q", "-H", "A:0"), "")
        wire = WireClient(server.url)
        try:
            wait_for(lambda: "Handler" in dict(_headers(wire, b"q.echo")), "the service answers")
            found = _headers(wire, b"q.echo")
            large = _headers(wire, b"q.echo", bytes(PAYLOAD_BYTES_MAX - len(TWICE)))
        finally:
            wire.close()
            serving.close()
    assert found[1][0] == "Handler" and found[1][1].isdigit()
    assert found[4:] == [("A", "0"), *VALUES]
    assert ("Nats-Service-Error", "nats: maximum payload exceeded") in large
