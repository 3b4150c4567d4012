"""Archives of servers before 2.15: tars of their files. `of_2_10.tar.s2` is what 2.10.26 sent."""

import io
import json
import struct
import tarfile
from pathlib import Path

import pytest

from jsctl.backups import s2
from jsctl.backups import tar as old
from jsctl.backups.archive import ConsumerEntry, MessageEntry
from jsctl.backups.tar import OldEntry, OtherEntry, TarParser
from tests.support.archives import ask, restore
from tests.support.node_play import NodePlay
from tests.support.stream_requests import stream

ARCHIVE = (Path(__file__).parent / "of_2_10.tar.s2").read_bytes()
LAST = b"\xff" * 9 + b"\x01"
META = b'{"name":"OLD"}'


def record(seq: int, body: bytes = b"x", subject: bytes = b"old.x", flags: int = 0) -> bytes:
    length = 22 + len(subject) + len(body) + 8
    head = struct.pack("<IQqH", length | flags, seq, 1_600_000_000_000_000_000, len(subject))
    return head + subject + body + bytes(8)


def tar(*files: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as written:
        for name, content in files:
            head = tarfile.TarInfo(name)
            head.size, head.mtime, head.type = len(content), 1.5, kind
            written.addfile(head, io.BytesIO(content))
    return s2.compressed(made.getvalue())


def parsed(size: int) -> list[OldEntry]:
    parser, found = TarParser(), list[OldEntry]()
    data = b"".join(s2.blocks(io.BytesIO(ARCHIVE)))
    for at in range(0, len(data), size):
        parser.feed(data[at : at + size])
        while (entry := parser.next()) is not None:
            found.append(entry)
    parser.finish()
    return found


def test_how_it_is_cut_makes_no_difference() -> None:
    whole = parsed(1 << 20)
    assert parsed(7) == parsed(500) == whole
    assert len([one for one in whole if isinstance(one, MessageEntry)]) == 6, "others are erased"
    (consumer,) = (one for one in whole if isinstance(one, ConsumerEntry))
    assert json.loads(consumer.data)["state"]["delivered"] == {"consumer_seq": 4, "stream_seq": 4}


def test_a_stream_of_an_old_server_is_restored() -> None:
    play = NodePlay()
    client = play.connect("a")
    config = stream("OLD", replicas=1)
    state = restore(client, config, ARCHIVE)["state"]
    assert (state["messages"], state["first_seq"], state["last_seq"]) == (6, 2, 9)
    assert state["num_deleted"] == 2 and state["consumer_count"] == 1
    for seq, there in ((1, False), (2, True), (5, True), (6, False), (8, True), (9, False)):
        got = ask(client, "$JS.API.STREAM.MSG.GET.OLD", b'{"seq":%d}' % seq)
        assert ("message" in got) == there
    told = ask(client, "$JS.API.CONSUMER.INFO.OLD.C", b"")
    assert told["delivered"]["stream_seq"] == 4
    assert (told["ack_floor"]["stream_seq"], told["num_ack_pending"]) == (2, 2)


BROKEN = {
    "another stream": (tar(("meta.inf", b'{"name":"OTHER"}')), "names do not match"),
    "a link": (tar(("meta.inf", META), kind=tarfile.SYMTYPE), "unexpected content"),
    "cut off": (s2.compressed(b"x" * 100), "cut off"),
    "no tar": (s2.compressed(b"x" * 1024), "invalid tar header"),
    "a short record": (tar(("msgs/1.blk", b"\x10" + bytes(40))), "wrong length"),
    "a long record": (tar(("msgs/1.blk", b"\xff\xff\xff\x00" + bytes(40))), "wrong length"),
    "half a record": (tar(("msgs/1.blk", record(1)[:-3])), "wrong length"),
    "wrong headers": (
        tar(("msgs/1.blk", record(1, b"\xff\xff\x00\x00x", flags=1 << 31))),
        "wrong length",
    ),
    "a subject": (tar(("msgs/1.blk", record(1, subject=b"a.>"))), "invalid subject"),
    "a consumer without config": (tar(("obs/C/o.dat", b"\x16\x02")), "missing config"),
    "a consumer's state": (
        tar(("obs/C/meta.inf", b"{}"), ("obs/C/o.dat", b"\x16\x02\x00")),
        "too early",
    ),
    "an endless state": (
        tar(
            ("obs/C/meta.inf", b"{}"), ("obs/C/o.dat", b"\x16\x02\0\0\0\0" + b"\xff" * 9 + b"\x01")
        ),
        "too many messages",
    ),
    "what went wrong": (tar(("errors.txt", b"a block was bad")), "a block was bad"),
}


def head(name: str, content: bytes, kind: bytes) -> bytes:
    made = tarfile.TarInfo(name)
    made.size, made.type = len(content), kind
    return made.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)


def test_heads_that_say_very_much_are_refused() -> None:
    parser = TarParser()
    parser.feed(head("x", b"7 a=bc\n" * 60, tarfile.XHDTYPE))
    parser.feed(head("x", b"3 \n" * 20_000, tarfile.XHDTYPE))
    assert parser.next() == OtherEntry()
    with pytest.raises(s2.BrokenStream, match="too much"):
        parser.next()


def test_files_of_no_interest_are_passed_over_one_at_a_time() -> None:
    parser = TarParser()
    for kind in (tarfile.REGTYPE, tarfile.XHDTYPE):
        parser.feed(head("other", b"", kind) * 3)
    parser.feed(head("msgs/1.blk", b"", tarfile.REGTYPE) + bytes(1024))
    assert [parser.next() for _ in range(7)] == [OtherEntry()] * 7
    assert parser.next() is None
    parser.finish()


def test_configurations_of_consumers_are_not_collected_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(old, "DOCUMENT_BYTES_MAX", 1000)
    config = json.dumps({"description": "x" * 80}).encode()
    data = tar(*[(f"obs/C{number}/meta.inf", config) for number in range(20)])
    answer = restore(NodePlay().connect("a"), stream("OLD", replicas=1), data)
    assert "too large" in json.dumps(answer), answer


@pytest.mark.parametrize(("data", "why"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_leaves_nothing(data: bytes, why: str) -> None:
    play = NodePlay()
    answer = restore(play.connect("a"), stream("OLD", replicas=1), data)
    assert why in json.dumps(answer), answer
    play.run(3)
    assert not [path for path in play.disk.paths() if path.startswith(("streams/", "consumers/"))]


def test_limits_are_applied_again() -> None:
    play = NodePlay()
    blocks = [(f"msgs/{n}.blk", b"".join(record(5 * n + at) for at in range(5))) for n in (1, 2)]
    data = tar(("meta.inf", META), *blocks, ("msgs/index.db", b"\x0b\x01\x0a\x0a\x07\x00\x0e\x00"))
    config = stream("OLD", replicas=1, max_msgs_per_subject=4)
    state = restore(play.connect("a"), config, data)["state"]
    assert (state["messages"], state["first_seq"], state["last_seq"]) == (4, 11, 14)
