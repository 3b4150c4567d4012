"""Archives as clients see them: snapshots taken, archives restored, on a node in this process."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from jsctl.backups import archive, s2
from jsctl.backups.archive import ArchiveReader, ConsumerEntry, Entry, MessageEntry, StateEntry
from jsctl.backups.entries import entry_bytes
from tests.support.node_play import PlayClient

CHUNK = 16 * 1024
STATE: dict[str, object] = {"messages": 0, "bytes": 0, "first_seq": 1, "last_seq": 0}


@dataclass
class Taken:
    """What came of a snapshot."""

    answer: dict[str, Any]
    chunks: list[bytes] = field(default_factory=list)
    end: bytes = b""
    """The headers of the message that ended it."""

    @property
    def entries(self) -> list[Entry]:
        """What is in it."""
        return list(ArchiveReader(BytesIO(b"".join(self.chunks))))

    @property
    def messages(self) -> list[MessageEntry]:
        """The messages in it."""
        return [one for one in self.entries if isinstance(one, MessageEntry)]

    @property
    def state(self) -> dict[str, Any]:
        """What it says of the stream."""
        (found,) = (one.state for one in self.entries if isinstance(one, StateEntry))
        return found

    @property
    def consumers(self) -> dict[str, Any]:
        """The consumers in it."""
        some = (one for one in self.entries if isinstance(one, ConsumerEntry))
        return {one.name: json.loads(one.data) for one in some}


def take(
    client: PlayClient,
    stream: str,
    between: Callable[[], None] = lambda: None,
    wait: Callable[[], None] = lambda: None,
    **asked: object,
) -> Taken:
    """A snapshot, each chunk acknowledged; `between` is called before that."""
    number = len(client.messages)
    to = f"deliver.{number}"
    client.subscribe(to)
    fields = {"deliver_subject": to, **asked}
    inbox = f"in.{number}"
    client.subscribe(inbox)
    client.publish(f"$JS.API.STREAM.SNAPSHOT.{stream}", json.dumps(fields).encode(), inbox)
    seen = number
    made = Taken({})
    while True:
        if seen == len(client.messages):
            wait()
        assert seen < len(client.messages), "the snapshot goes on"
        (subject, reply, payload), head = client.messages[seen], client.heads[seen]
        seen += 1
        if subject == inbox:
            made.answer = json.loads(payload)
            if "error" in made.answer:
                return made
        elif subject == to and not payload:
            made.end = head
            return made
        elif subject == to:
            made.chunks.append(payload)
            between()
            if reply:
                client.publish(reply)


def restore(
    client: PlayClient,
    config: Mapping[str, object],
    data: bytes,
    wait: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """The last answer to an archive that is restored."""
    name = str(config["name"])
    body = json.dumps({"config": config, "state": {}}).encode()
    begun = ask(client, f"$JS.API.STREAM.RESTORE.{name}", body, wait)
    if "error" in begun:
        return begun
    for at in range(0, len(data), CHUNK):
        answer = ask(client, begun["deliver_subject"], data[at : at + CHUNK], wait)
        if answer:
            return answer
    return ask(client, begun["deliver_subject"], b"", wait)


def ask(
    client: PlayClient, subject: str, payload: bytes, wait: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """The first answer, decoded; empty for an empty one."""
    before = len(client.messages)
    inbox = f"in.{before}"
    client.subscribe(inbox)
    client.publish(subject, payload, inbox)
    for _ in range(400):
        answers = [body for to, _, body in client.messages[before:] if to == inbox]
        if answers:
            return json.loads(answers[0]) if answers[0] else {}
        wait()
    raise AssertionError(f"no answer to {subject}")


def message(
    seq: int,
    payload: bytes = b"x",
    *,
    subject: str | bytes = "s.x",
    headers: bytes = b"",
    **at: int,
) -> bytes:
    """An entry."""
    time_ns = at.get("time_ns", 1_600_000_000_000_000_000 + seq)
    return entry_bytes(subject, time_ns, seq, headers, payload)


def consumer(name: str, config: Mapping[str, object], state: Mapping[str, object]) -> bytes:
    """An entry."""
    body = json.dumps({"config": config, "state": state}).encode()
    return entry_bytes(f"consumers/{name}", 1, 0, b"", body)


def packed(*entries: bytes, end: bool = True, **state: object) -> bytes:
    """An archive of these."""
    begin = archive.begin_bytes(1, {**STATE, **state})
    return s2.compressed(b"".join((begin, *entries, archive.end_bytes() if end else b"")))
