"""What publishers are answered, in the bytes of the real server."""

from collections.abc import Iterator, Sequence
from itertools import chain

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError
from jsctl.broker.protocol.deliveries import AckRun, OutgoingMessage

Ack = tuple[bytes, bytes]
"""(reply subject, payload)."""


class Acks:
    """What the publishers of an entry's messages are told when it is applied. Until then retries
    may join."""

    __slots__ = ("_others", "_run")

    def __init__(self, run: AckRun | None = None) -> None:
        self._run = run
        self._others: list[Ack] = []

    @property
    def is_plain(self) -> bool:
        """Whether messages are stored one behind the other, and that is all that is told."""
        return self._run is not None and not self._others

    def append(self, ack: Ack) -> None:
        """One more is told something."""
        self._others.append(ack)

    def __iter__(self) -> Iterator[Ack]:
        items = () if self._run is None else self._run.items()
        return chain([(item[0], item[3]) for item in items], self._others)

    def said(self) -> list[OutgoingMessage]:
        """All of it, to be published."""
        others = [(reply, b"", b"", body, b"") for reply, body in self._others]
        return [*others] if self._run is None else [self._run, *others]


class PubAcks:
    """Answers of one stream. `plain` and `duplicate` want a sequence: `acks.plain % seq`."""

    __slots__ = ("_form", "_head", "_tail", "duplicate", "plain")

    def __init__(self, stream: str, domain: str) -> None:
        name = dumps(stream)
        head = b'{"stream":' + name.replace(b"%", b"%%") + b',"seq":%d'
        if domain:
            head += b',"domain":' + dumps(domain).replace(b"%", b"%%")
        self._head = head
        before, _, behind = (head + b"}").replace(b"%%", b"%").rpartition(b"%d")
        self._form = before, behind
        self._tail = b',"stream":' + name + b',"seq":0}'
        self.plain = head + b"}"
        self.duplicate = head + b',"duplicate": true}'

    def run(self, replies: Sequence[bytes], first_seq: int) -> Acks:
        """Messages with sequences from `first_seq` on are stored; those without a reply are told
        nothing."""
        if all(replies):
            return Acks(AckRun([*replies], first_seq, self._form))
        made = Acks()
        for seq, reply in enumerate(replies, first_seq):
            if reply:
                made.append((reply, self.plain % seq))
        return made

    def counter(self, seq: int, value: bytes) -> bytes:
        """A counter stands at a value with the message that was stored."""
        return self._head % seq + b',"val":"%b"}' % value

    def batch(self, seq: int, batch_id: bytes, count: int, *, duplicate: bool = False) -> bytes:
        """A batch of so many messages is stored, the last one with this sequence; it may have been
        there before."""
        name = dumps(batch_id.decode("utf-8", "replace"))
        head = (self.duplicate[:-1] if duplicate else self._head) % seq
        return head + b',"batch":%b,"count":%d}' % (name, count)

    def refusal(self, error: ApiError) -> bytes:
        """Nothing is stored."""
        return b'{"error":' + dumps(error.body()) + self._tail
