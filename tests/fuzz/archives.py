"""Archives that somebody restores: a stream that is whole in itself, or a reason why there is none.

The first byte of an input says what the rest is: a stream of blocks, or what such a stream holds.
"""

import random
import struct
import tarfile
from io import BytesIO
from itertools import pairwise

from jsctl.api.stream import StreamConfig
from jsctl.backups import archive, s2
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jsapi.archives.building import RestoreBuild
from jsctl.broker.store.memory_store import MemoryStore
from tests.fuzz.target import Target
from tests.support.archives import STATE, consumer, message

NOW_NS = 1_700_000_000_000_000_000
PAYLOAD_MAX = 1024 * 1024
CONSUMERS_MAX = 10
BLOCKS, CONTENT, PLAIN = 0, 1, 2
HEAD = b"NATS/1.0\r\nNats-Msg-Id: one\r\nNats-TTL: 10s\r\n\r\n"

Outcome = tuple[str, int, int, int, int]


def content() -> bytes:
    """An archive before it is packed."""
    config: dict[str, object] = {"name": "C", "durable_name": "C", "ack_policy": "explicit"}
    state: dict[str, object] = {
        "delivered": {"consumer_seq": 4, "stream_seq": 4},
        "ack_floor": {"consumer_seq": 1, "stream_seq": 1},
        "pending": {"2": {"Sequence": 2, "Timestamp": 7}},
        "redelivered": {"2": 1},
        "jsctl_selected": {"last_seqs": [3, 4], "resume": 9},
    }
    rows = [
        message(seq, b"x" * seq, subject=f"s.{seq}", headers=HEAD, time_ns=NOW_NS)
        for seq in (2, 3, 7)
    ]
    begin = archive.begin_bytes(1, {**STATE, "last_seq": 9, "consumer_count": 1})
    return b"".join((begin, consumer("C", config, state), *rows, archive.end_bytes()))


def old_content() -> bytes:
    """What a server before 2.15 packs."""
    row = struct.pack("<IQqH", 22 + 3 + 5 + 8, 2, NOW_NS, 3) + b"s.xhello" + bytes(8)
    gone = struct.pack("<IQqH", 30, 2 | 1 << 62, NOW_NS, 0) + bytes(8)
    config = b'{"name":"C","durable_name":"C","ack_policy":"explicit"}'
    files = {
        "meta.inf": b'{"name":"S"}',
        "msgs/1.blk": row + row.replace(b"\x02", b"\x03", 1) + gone,
        "msgs/index.db": bytes((11, 1, 1, 9, 2, 0, 3, 0)),
        "obs/C/meta.inf": config,
        "obs/C/o.dat": bytes((22, 2, 1, 1, 3, 3, 1, 18, 1, 1, 2, 1, 1, 1)),
    }
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as written:
        for name, content in files.items():
            head = tarfile.TarInfo(name)
            head.size = len(content)
            written.addfile(head, BytesIO(content))
    return made.getvalue().rstrip(b"\0") + bytes(1024)


def built(data: bytes, cuts: list[int]) -> tuple[RestoreBuild, Outcome]:
    """What comes of a stream of blocks that arrives in pieces."""
    config = StreamConfig(name="S", subjects=("s.>",), allow_msg_ttl=True, max_msg_size=-1)
    stream = Stream("A", config, NOW_NS, MemoryStore())
    build = RestoreBuild(stream, NOW_NS, PAYLOAD_MAX, CONSUMERS_MAX)
    bounds = [0, *cuts, len(data)]
    for begin, end in pairwise(bounds):
        build.feed(data[begin:end])
        while build.more:
            build.work()
        if build.problem:
            break
    if not build.problem:
        build.finish()
    store = stream.store
    found = (store.messages, store.last_seq, store.digest(), len(build.consumers))
    return build, (build.problem, *(found if not build.problem else (0, 0, 0, 0)))


class Archives(Target):
    """See the module."""

    name = "archives"
    words = (
        archive.MAGIC,
        b"state.json",
        b"consumers/",
        b'"consumer_count":',
        b'"last_seq":18446744073709551615',
        b"\xff" * 9 + b"\x01",
        b"\xff\x06\x00\x00sNaPpY",
        b"\xff\x06\x00\x00S2sTwO",
        b"\x00\x00\x00\x40",
        b"\xfe\xff\xff\xff",
        b"NATS/1.0\r\n",
        b"Nats-TTL: never",
        b'"Sequence":',
        b"-1",
    )

    def seeds(self) -> list[bytes]:
        plain = content()
        packed = s2.compressed(plain)
        return [
            bytes((BLOCKS,)) + packed,
            bytes((BLOCKS,)) + s2.plain_chunk(plain),
            bytes((CONTENT,)) + plain,
            bytes((PLAIN,)) + plain,
            bytes((CONTENT,)) + old_content(),
        ]

    def run(self, data: bytes, rng: random.Random) -> None:
        if not data:
            return
        kind, rest = data[0] % 3, data[1:]
        if kind == CONTENT:
            rest = s2.compressed(rest)
        elif kind == PLAIN:
            rest = s2.plain_chunk(rest)
        build, whole = built(rest, [])
        cuts = sorted(rng.randrange(len(rest) + 1) for _ in range(3))
        assert built(rest, cuts)[1] == whole, "how it is cut makes no difference"
        if build.problem:
            return
        store = build.stream.store
        store.check_totals()
        assert store.first_seq <= store.last_seq + 1 <= 1 << 63
        for row in store.load_range(1, 1000):
            assert 0 < row[0] <= store.last_seq and b" " not in row[2]
        for one in build.consumers:
            state = one.state
            assert state.floor_stream <= state.delivered_stream
            assert list(state.pending) == sorted(state.pending)
            state.decode(state.encode())
