"""How often a server looks at the bytes of a message, from the publish to the consumer's count.

Counted on whole nodes: what decodes records, and what passes over a payload with a checksum or a
hash. The figures are those of decision 19; who needs one more look has to say there why.
"""

import hashlib
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from jsctl.broker.store import record
from tests.support.cluster_play import ClusterPlay, ServerPlay

PAYLOAD = bytes(range(256)) * 128
"""32 KiB: what passes over so many bytes passes over a payload."""
ID = b"NATS/1.0\r\nNats-Msg-Id: one\r\n\r\n"
CRC32, BLAKE2B = zlib.crc32, hashlib.blake2b
DECODERS = (record.read_columns, record.decode_records)


class Looks:
    """Counts by server and kind of look. Whose turn it is tells who looks."""

    def __init__(self) -> None:
        self.server = ""
        self.counts: Counter[tuple[str, str]] = Counter()

    def of(self, server: str) -> dict[str, int]:
        """Kind -> how often."""
        return {kind: n for (name, kind), n in sorted(self.counts.items()) if name == server}

    def note(self, kind: str, data: Any = PAYLOAD) -> None:
        """Somebody looks at these bytes."""
        if len(data) >= len(PAYLOAD):
            self.counts[(self.server, kind)] += 1

    def decoding(self, decode: Callable[..., Any]) -> Callable[..., Any]:
        """A decoder that is counted."""

        def counted(buffer: bytes, start: int, end: int) -> Any:
            self.note("decoded", buffer)
            return decode(buffer, start, end)

        return counted

    def crc32(self, data: Any, start: int = 0) -> int:
        """As `zlib.crc32`."""
        self.note("crc", data)
        return CRC32(data, start)

    def blake2b(self, data: Any = b"", **options: Any) -> Any:
        """As `hashlib.blake2b`."""
        made = Hashing(self, BLAKE2B(**options))
        made.update(data)
        return made


class Hashing:
    """A hash whose large updates are counted."""

    def __init__(self, looks: Looks, made: Any) -> None:
        self._looks = looks
        self._made = made

    def update(self, data: Any) -> None:
        """As of `hashlib`."""
        self._looks.note("hash", data)
        self._made.update(data)

    def digest(self) -> Any:
        """As of `hashlib`."""
        return self._made.digest()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Counts from here on, by whatever name the broker's modules know these functions."""
    counting = Looks()
    others: dict[Any, Any] = {CRC32: counting.crc32, BLAKE2B: counting.blake2b}
    others |= {decode: counting.decoding(decode) for decode in DECODERS}
    broker = [module for name, module in sys.modules.items() if name.startswith("jsctl.broker")]
    for module in (zlib, hashlib, *broker):
        for name, value in list(vars(module).items()):
            if callable(value) and getattr(value, "__hash__", None) and value in others:
                monkeypatch.setattr(module, name, others[value])
    step = ServerPlay.step

    def turn(server: ServerPlay) -> None:
        counting.server = server.name
        step(server)

    monkeypatch.setattr(ServerPlay, "step", turn)
    return counting


def made(**config: object) -> tuple[ClusterPlay, ServerPlay]:
    """Three servers with a stream of three replicas and a consumer that its leader leads too."""
    cluster = ClusterPlay()
    client = cluster["n1"].connect("a")
    stream = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, **config}
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **stream)
    consumer = {"durable_name": "C", "ack_policy": "explicit"}
    answer = client.ask("$JS.API.CONSUMER.CREATE.S.C", stream_name="S", config=consumer)
    assert "error" not in answer
    leader = cluster.leader(cluster.group_of("S"))
    if cluster.leader(cluster.group_of("S", "C")) is not leader:
        wanted = {"preferred": leader.name}
        client.ask("$JS.API.CONSUMER.LEADER.STEPDOWN.S.C", placement=wanted)
    group = cluster.group_of("S", "C")
    cluster.wait(lambda: cluster.maybe_leader(group) is leader, "one server leads both")
    return cluster, leader


def published(cluster: ClusterPlay, leader: ServerPlay, looks: Looks, headers: bytes = b"") -> None:
    """One publish at the leader, until all replicas have it; only that is counted."""
    client = leader.connect("a")
    client.subscribe("acks")
    looks.counts.clear()
    size = len(headers) + len(PAYLOAD)
    client.send(b"HPUB s.a acks %d %d\r\n%b%b\r\n" % (len(headers), size, headers, PAYLOAD))
    cluster.run(1)
    assert [one["seq"] for one in client.heard("acks")] == [1]
    info = client.ask("$JS.API.CONSUMER.INFO.S.C")
    assert (info["num_pending"], info["cluster"]["leader"]) == (1, leader.name)
    for server in cluster:
        (stream,) = server.engine.assets.streams.values()
        assert stream.store.messages == 1


@pytest.mark.parametrize("headers", [b"", ID, b"NATS/1.0\r\nNats-Msg-Id: one\r\nA: b\r\n\r\n"])
@pytest.mark.parametrize("config", [{}, {"max_msgs_per_subject": 5}])
def test_an_entry_is_decoded_once_on_a_follower_and_never_where_it_was_made(
    looks: Looks, headers: bytes, config: dict[str, int]
) -> None:
    cluster, leader = made(**config)
    published(cluster, leader, looks, headers)
    for server in cluster:
        decoded = looks.of(server.name).get("decoded", 0)
        assert decoded == (0 if server is leader else 1), server.name


@pytest.mark.parametrize("headers", [b"", ID])
def test_a_payload_is_passed_over_once_for_the_disk_and_once_for_the_way(
    looks: Looks, headers: bytes
) -> None:
    cluster, leader = made()
    published(cluster, leader, looks, headers)
    for server in cluster:
        found = looks.of(server.name)
        found.pop("decoded", None)
        if server is leader:
            # The record's, from which follows the frame's; and one for peer frames to all.
            assert found == {"crc": 1 + 1, "hash": 1}
        else:
            assert found == {"crc": 1, "hash": 1}, server.name
