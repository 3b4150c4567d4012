"""The same life of a consumer here and at a real server: bytes sent, and the info at the end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.api.codec import encode
from jsctl.broker.handlers.consumer_info import consumer_info
from tests.support.consumer_play import Play
from tests.support.consumer_view import OneBroker, as_view
from tests.support.nats_process import real_server
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

SCRIPTS: dict[str, str] = {
    "plain": """
        publish a 5
        consumer ack_wait=20s
        pull in {"batch":3}
        ack 2
        ack 1 +ACK reply=r
        ack 1 +ACK reply=r
        ack 3 -NAK
        pull in 2
        pull in {"batch":5,"no_wait":true}
        pull in {"batch":5,"no_wait":true}
        ack 5 +TERM enough
        ack 4 what reply=r
    """,
    "bytes": """
        publish a 4 100
        consumer
        pull in {"batch":2,"max_bytes":1000,"expires":1000000000}
        pull in {"batch":5,"max_bytes":120,"expires":1000000000}
        pull in {"batch":5,"max_bytes":200,"expires":1000000000}
    """,
    "all": """
        publish a 6
        consumer ack_policy=all max_batch=5 max_expires=10s max_bytes=1000
        pull in 5
        ack 3 +ACK reply=r
        ack 2 +ACK reply=r
        pull in 6
        pull in {"batch":1,"expires":11000000000}
        pull in {"batch":1,"expires":1000000000,"max_bytes":2000}
        pull in {"batch":1,"priority":11}
        pull in {"batch":2,"id":"x","no_wait":true}
        pull in {"batch":1,"expires":1000000000,"idle_heartbeat":600000000}
    """,
    "none": """
        publish a 3 20
        consumer ack_policy=none headers_only=true
        pull in 2
    """,
    "last per subject": """
        publish a 3
        publish b 2
        publish c 1
        consumer deliver_policy=last_per_subject filter_subject=>
        pull in 2
        ack 3
    """,
    "filtered": """
        publish a 1
        publish b 2
        publish c 2
        publish a 2
        consumer filter_subjects=a,c
        pull in 4
        ack 1
        ack 4
        ack 5
    """,
    "new": """
        publish a 3
        consumer deliver_policy=new
        publish a 2
        pull in 1
        pull in {"batch":4,"no_wait":true}
    """,
    "last": """
        publish a 3
        consumer deliver_policy=last
    """,
    "from a sequence": """
        publish a 3
        consumer deliver_policy=by_start_sequence opt_start_seq=7
    """,
    "ack pending": """
        publish a 6
        consumer max_ack_pending=2 max_waiting=2
        pull in {"batch":3,"expires":30000000000}
        pull in {"batch":3,"expires":30000000000}
        pull in {"batch":3,"expires":30000000000}
        ack 1
        ack 2
    """,
    "overflow": """
        publish a 3
        consumer priority_policy=overflow priority_groups=g
        pull in {"batch":5,"expires":60000000000,"group":"g","min_pending":5}
        publish a 2
        pull in {"batch":5,"no_wait":true,"group":"h"}
        pull in {"batch":5,"expires":1000000000,"id":"h","group":"g","min_pending":50}
    """,
    "prioritized": """
        consumer priority_policy=prioritized priority_groups=g
        pull in {"batch":1,"expires":60000000000,"group":"g","priority":5}
        pull in {"batch":2,"expires":60000000000,"group":"g","priority":1}
        publish a 1
        publish a 1
        pull in {"batch":2,"expires":60000000000}
    """,
    "next": """
        publish a 4
        consumer
        pull in 1
        ack 1 +NXT reply=in
        ack 2 +NXT {"batch":5,"no_wait":true} reply=in
    """,
    "max deliver": """
        publish a 2
        consumer max_deliver=2
        pull in 5
        ack 1 -NAK
        pull in 5
        ack 1 -NAK
        pull in {"batch":9,"no_wait":true}
        ack 2
    """,
    "push": """
        publish a 3
        consumer deliver_subject=in
        ack 1
        pull in 1
    """,
    "flow control": """
        publish a 3 600000
        consumer deliver_subject=in flow_control=true idle_heartbeat=60s
    """,
}


class Real:
    """Does at a real server what a script says."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.acks: dict[int, bytes] = {}
        self.got: list[tuple[bytes, ...]] = []
        self.api("STREAM.CREATE.S", b'{"name":"S","subjects":["a","b","c"],"storage":"memory"}')

    def api(self, subject: str, body: bytes) -> dict[str, object]:
        """A request; its answer comes in turn with everything else."""
        self.client.publish(f"$JS.API.{subject}".encode(), body, b"api.answer")
        while True:
            assert self.client.await_messages(1, 5.0), subject
            message = self.client.messages.popleft()
            if message[0] == b"2":
                break
            self.note(message)
        answer: dict[str, object] = json.loads(message[4])
        assert "error" not in answer, answer
        return answer

    def note(self, message: tuple[bytes, bytes, bytes, bytes, bytes]) -> None:
        _, subject, reply, headers, payload = message
        if reply.startswith(b"$JS.ACK."):
            self.acks[int(reply.split(b".")[5])] = reply
        self.got.append(_plain(subject, reply, headers, payload))

    def do(self, play: Play, line: str) -> None:
        """One command, after `play` has done it."""
        name, *words = line.split()
        getattr(self, f"do_{name}")(play, words)

    def do_publish(self, play: Play, words: list[str]) -> None:
        count, size = (int(word) for word in [*words[1:], "1", "1"][:2])
        if len(words) == 2:
            size = 1
        for _ in range(count):
            self.client.publish(words[0].encode(), b"x" * size)
        wait_for(lambda: self._last() == play.store.last_seq, "the messages to be stored")
        if hasattr(play, "leader"):
            wait_for(
                lambda: self._pending() == play.leader.delivery.num_pending, "the consumer to know"
            )

    def _last(self) -> object:
        state = self.api("STREAM.INFO.S", b"")["state"]
        assert isinstance(state, dict)
        return state["last_seq"]

    def _pending(self) -> object:
        return self.api("CONSUMER.INFO.S.C", b"")["num_pending"]

    def do_consumer(self, play: Play, words: list[str]) -> None:
        config = {**encode(play.config), "durable_name": "C"}
        body = json.dumps({"stream_name": "S", "config": config}).encode()
        self.api("CONSUMER.CREATE.S.C", body)

    def do_pull(self, play: Play, words: list[str]) -> None:
        subject, body = b"$JS.API.CONSUMER.MSG.NEXT.S.C", " ".join(words[1:]).encode()
        self.client.publish(subject, body, words[0].encode())

    def do_ack(self, play: Play, words: list[str]) -> None:
        rest = [word for word in words[1:] if not word.startswith("reply=")]
        replies = [word.removeprefix("reply=") for word in words if word.startswith("reply=")]
        reply = replies[0].encode() if replies else b""
        self.client.publish(self.acks[int(words[0])], " ".join(rest).encode(), reply)
        self.client.flush()


def _plain(subject: bytes, reply: bytes, headers: bytes, payload: bytes) -> tuple[bytes, ...]:
    """A message without what differs from run to run."""
    tokens = reply.split(b".")
    if reply.startswith(b"$JS.ACK."):
        tokens[7] = b"time"
    if reply.startswith(b"$JS.FC."):
        tokens[-1] = b"id"
    return subject, b".".join(tokens), headers, b"%dB" % len(payload)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[WireClient]:
    with real_server(tmp_path) as url:
        made = WireClient(url)
        made.send(b"SUB in 1\r\nSUB api.answer 2\r\nSUB r 3\r\n")
        made.flush()
        yield made
        made.close()


def _comparable(info: dict[str, object]) -> dict[str, object]:
    kept = {key: value for key, value in info.items() if key not in ("created", "ts", "type")}
    kept.pop("cluster", None)
    for name in ("delivered", "ack_floor"):
        place = kept[name]
        assert isinstance(place, dict)
        kept[name] = {**place, "last_active": bool(place.get("last_active"))}
    return kept


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.processes
def test_a_real_server_does_the_same(name: str, client: WireClient) -> None:
    play, real = Play(), Real(client)
    mine: list[tuple[bytes, ...]] = []
    for line in SCRIPTS[name].strip().splitlines():
        play.run(line.strip())
        real.do(play, line.strip())
        sent, play.sent = play.sent, []
        mine += [_plain(item[4] or item[0], *item[1:4]) for item in sent]
        missing = len(mine) - len(real.got)
        client.await_messages(missing, 2.0)
        while client.messages:
            real.note(client.messages.popleft())
        assert real.got == mine, line
    info = real.api("CONSUMER.INFO.S.C", b"")
    assert real.got == mine
    broker = OneBroker(now_ns=play.now)
    here = encode(consumer_info(as_view(broker), play.consumer, play.leader, None))
    config = here.pop("config")
    theirs = info.pop("config")
    assert isinstance(config, dict) and isinstance(theirs, dict)
    config.pop("metadata"), theirs.pop("metadata")
    theirs.pop("name", None)
    assert config == theirs
    assert _comparable(here) == _comparable(info)
