"""Archives of streams: taken from either server, given to either."""

import json
from functools import partial
from typing import Any

from tests.support.waiting import wait_for
from tests.support.wire_client import Received, WireClient

CHUNK_S = 10.0
PIECE_BYTES = 60_000
NOBODY = b"NATS/1.0 503"


def take(client: WireClient, stream: str, **asked: object) -> tuple[dict[str, Any], bytes]:
    """What a snapshot is answered with, and its archive."""
    client.messages.clear()
    inbox = b"_INBOX.archive." + stream.encode()
    client.send(b"SUB %s archive\r\n" % inbox)
    body = {"deliver_subject": inbox.decode(), **asked}
    subject = f"$JS.API.STREAM.SNAPSHOT.{stream}".encode()
    answer = json.loads(client.request(subject, json.dumps(body).encode()) or b"{}")
    data = b""
    while answer and "error" not in answer:
        assert client.await_messages(1, CHUNK_S), "the archive goes on"
        sid, _, reply, _, chunk = client.messages.popleft()
        if sid != b"archive":
            continue
        if not chunk:
            break
        data += chunk
        if reply:
            client.publish(reply, b"")
    client.send(b"UNSUB archive\r\n")
    client.flush()
    return answer, data


def restore(client: WireClient, config: dict[str, Any], data: bytes) -> bytes:
    """The last answer."""
    subject = f"$JS.API.STREAM.RESTORE.{config['name']}".encode()
    answer = client.request(subject, json.dumps({"config": config, "state": {}}).encode())
    target = json.loads(answer or b"{}").get("deliver_subject", "").encode()
    if not target:
        return answer
    for at in range(0, len(data), PIECE_BYTES):
        told = wait_for(partial(_heard, client, target, data[at : at + PIECE_BYTES]), "a listener")
        if told and told[4]:
            return told[4]
    return client.request(target, b"")


def _heard(client: WireClient, target: bytes, piece: bytes) -> Received | None:
    """What a piece is answered with. In a cluster the answer that names the target may be faster
    than the news that somebody listens there."""
    told = client.answer(target, piece)
    return told if told is not None and not told[3].startswith(NOBODY) else None
