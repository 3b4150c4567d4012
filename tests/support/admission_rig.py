"""A stream with its leader, and a log that takes everything."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.entries import decode
from jsctl.broker.jetstream.streams.pub_acks import Acks
from jsctl.broker.jetstream.streams.publish_room import PublishRoom
from jsctl.broker.jetstream.streams.sequencer import Admitted
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.memory_store import MemoryStore

SECOND = 10**9
Fields = dict[str, str]


class AdmissionRig:
    """See the module. Answers are kept by their subject; an empty one is an empty document."""

    def __init__(self, interested: Callable[[bytes], bool] | None = None, **config: Any) -> None:
        made = StreamConfig(name="S", subjects=("s.>",), duplicate_window=120 * SECOND)
        self.stream = Stream("A", replace(made, **config), 5, MemoryStore())
        self.follower = Stream("A", replace(made, **config), 5, MemoryStore())
        """Knows the entries only, nothing of how they were made."""
        self.room = PublishRoom()
        self.payload = b"data"
        """Of all that is published."""
        self._interested = interested or (lambda subject: True)
        self.leader = StreamLeader(self.stream, interested=self._interested, room=self.room)
        self.index = 0
        self.now = 1000 * SECOND
        self.waiting: list[tuple[bytes, Acks]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self.said: list[tuple[str, dict[str, Any]]] = []
        """All answers, in order."""

    def lead_anew(
        self,
        needs: Callable[[int], bool] = lambda seq: False,
        unapplied: Callable[[], Iterable[bytes]] = lambda: (),
    ) -> None:
        """Another leader, which knows what is applied."""
        assert not self.waiting
        self.leader.end()
        self.leader = StreamLeader(
            self.stream,
            interested=self._interested,
            room=self.room,
            needs=needs,
            unapplied=unapplied,
        )
        self.propose(self.leader.revive(self.now))

    def lose(self, made: Admitted) -> None:
        """The log takes nothing."""
        self.leader.proposed(None)
        made.rejects += self.leader.refused(made.acks)
        self._hear(made.rejects)

    def propose(self, made: Admitted) -> None:
        """The log takes it."""
        self._hear(made.rejects)
        self.leader.proposed(self.index + len(self.waiting) + 1 if made.entries else 0)
        self.waiting += zip(made.entries, made.acks, strict=True)

    def admit(self, *messages: tuple[bytes, str, Fields] | tuple[bytes, str]) -> Admitted:
        """What comes of a turn's publishes: (subject, reply, headers)."""
        batch: list[tuple[bytes, bytes, bytes, bytes, object]] = []
        for subject, reply, *fields in messages:
            headers = b""
            for key, value in (fields[0] if fields else {}).items():
                headers = headers or b"NATS/1.0\r\n"
                headers += f"{key}: {value}\r\n".encode()
            headers = headers and headers + b"\r\n"
            batch.append((subject, reply.encode(), headers, self.payload, None))
        return self.leader.admit(batch, self.now)

    def publish(self, *messages: tuple[bytes, str, Fields] | tuple[bytes, str]) -> None:
        """A turn's publishes go into the log."""
        self.propose(self.admit(*messages))

    def settle(self) -> None:
        """Everything in the log is applied, here and by a follower, and nothing differs."""
        for entry, acks in self.waiting:
            self.index += 1
            made = self.leader.in_flight.at(self.index)
            if made is None or made.entry is None:
                self.stream.apply(self.index, decode(entry))
            else:
                assert made.entry.frame.buffer is entry
                self.stream.apply(self.index, made.entry, made.ids)
            self.follower.apply(self.index, decode(entry))
            self._hear(acks)
        self.waiting = []
        assert self.follower.snapshot() == self.stream.snapshot()
        assert self.follower.last_msg_id == self.stream.last_msg_id
        assert self.follower.store.digest() == self.stream.store.digest()
        self.leader.applied(self.index)

    def _hear(self, acks: Iterable[tuple[bytes, bytes]]) -> None:
        for reply, payload in acks:
            document = json.loads(payload or b"{}")
            self.answers[reply.decode()] = document
            self.said.append((reply.decode(), document))

    def ask(self, subject: bytes = b"s.a", **fields: str | int) -> dict[str, Any]:
        """The answer to one publish; words of headers are joined by dashes."""
        headers = {f"Nats-{key.replace('_', '-')}": str(value) for key, value in fields.items()}
        self.publish((subject, "r", headers))
        self.settle()
        return self.answers.pop("r")

    def error(self, subject: bytes = b"s.a", **fields: str | int) -> tuple[int, str]:
        """Code and text of the refusal of one publish."""
        answer = self.ask(subject, **fields)
        assert (answer["stream"], answer["seq"]) == ("S", 0)
        return answer["error"]["err_code"], answer["error"]["description"]

    def seqs(self) -> list[int]:
        """What the stream holds."""
        return [row[0] for row in self.stream.store.load_range(1, 1000)]
