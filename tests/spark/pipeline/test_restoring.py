"""What a restore makes of answers, message by message, without a server."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from jsctl.errors import Conflict, Unreachable
from jsctl.settings import Context, Settings
from jsctl.spark.connection.wire import Closed, Message
from jsctl.spark.pipeline.archives import restore
from jsctl.spark.pipeline.archives.restore import RestorePlan, _Sender

PLAN = RestorePlan("path", "S", True, False, 1, 1, 1, 0, 0, {})
STORED = b'{"stream": "S", "seq": 1}'


class Wire:
    """Answers each message at once."""

    inbox = "_INBOX.x"

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.info = {"max_payload": 200}
        self.replies: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.replies += [line.split()[2] for line in data.split(b"\r\n") if line[:5] == b"HPUB "]

    def receive(self, _deadline: float) -> Message:
        return Message(self.replies.pop(0), b"1", b"", b"", self.answer)

    def close(self) -> None:
        return


def sent(monkeypatch: pytest.MonkeyPatch, answer: bytes, body: bytes = b"") -> _Sender:
    """A sender whose only message was answered so."""
    monkeypatch.setattr(restore, "open_wire", lambda _settings: Wire(answer))
    sender = _Sender(Settings(connection=Context()), PLAN, 0)
    sender.send("a", [], body, 1)
    sender.finish()
    return sender


def test_a_message_that_is_stored_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sent(monkeypatch, STORED).confirmed == 1


@pytest.mark.parametrize("answer", [b"hello", b"[]", b"7", b"", b"\xff", b"{}"])
def test_an_answer_of_something_else_is_told(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    with pytest.raises(Conflict, match="message 1"):
        sent(monkeypatch, answer)


def test_a_refusal_is_told_and_a_passing_one_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Conflict, match="message 1 was refused: no"):
        sent(monkeypatch, b'{"error": {"code": 400, "err_code": 10054, "description": "no"}}')
    with pytest.raises(Unreachable, match="message 1: later"):
        sent(monkeypatch, b'{"error": {"code": 503, "err_code": 10008, "description": "later"}}')


def test_a_message_that_became_too_large_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server would hang up, again and again."""
    with pytest.raises(Conflict, match=r"message 1 has 2.. bytes"):
        sent(monkeypatch, STORED, bytes(200))


def test_what_was_confirmed_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a consumer takes messages out as soon as they are stored."""

    class Breaking(Wire):
        """Breaks behind its first answer."""

        def receive(self, deadline: float) -> Message:
            if self.broken:
                raise Closed("broken")
            self.broken = True
            return super().receive(deadline)

        broken = False

    begun: list[int] = []

    def rows(_root: Path, first: int) -> Iterator[dict[str, object]]:
        begun.append(first)
        for seq in range(first, 4):
            yield {"seq": seq, "subject": "a", "ts_ns": 0, "headers": (), "data": b""}

    wires = iter((Breaking(STORED), Wire(STORED)))
    monkeypatch.setattr(restore, "open_wire", lambda _settings: next(wires))
    monkeypatch.setattr(restore, "_rows", rows)
    monkeypatch.setattr(restore, "JetStream", lambda _options: nullcontext())
    monkeypatch.setattr(restore, "_reached", lambda _js, _stream: (0, 1))
    settings = Settings(connection=Context())
    done = restore.restore(settings, PLAN, (), told=lambda _rows, _seq: None)
    assert (begun, done.rows) == ([1, 2], 3)
