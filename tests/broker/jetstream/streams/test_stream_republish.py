"""Copies of stored messages, side by side with those of the real server."""

from pathlib import Path

import pytest

from jsctl.api.stream import Republish
from jsctl.broker.jetstream.streams.entries import decode, encode_expire, make_messages
from jsctl.broker.jetstream.streams.republish import Republisher, stored_records
from jsctl.broker.store.record import Record
from tests.support.real_server import real_server

HEADERS = b"NATS/1.0\r\nMine: 1\r\n\r\n"


def _untimed(copy: tuple[bytes, bytes]) -> tuple[list[bytes], bytes]:
    return [line for line in copy[0].split(b"\r\n") if b"Time-Stamp" not in line], copy[1]


@pytest.mark.parametrize("headers_only", [False, True])
@pytest.mark.processes
def test_copies_are_those_of_the_real_server(tmp_path: Path, headers_only: bool) -> None:
    republish = Republish(src="s.*", dest="_IN.copy.{{wildcard(1)}}", headers_only=headers_only)
    ours = Republisher("S", republish)
    with real_server(tmp_path) as real:
        dest = {"src": republish.src, "dest": republish.dest, "headers_only": headers_only}
        real.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"], "republish": dest})
        last: dict[bytes, int] = {}
        for seq, (subject, headers) in enumerate(
            [("s.a", b""), ("s.b", HEADERS), ("s.a", HEADERS)], start=1
        ):
            target = f"_IN.copy.{subject[2:]}"
            heard = real.publish(subject, b"data", headers, target)
            record = Record(seq, 7, subject.encode(), headers, b"data")
            ((made, *copy),) = ours.copies([record], last.get)
            last[record.subject] = seq
            assert made == target.encode()
            assert _untimed((copy[0], copy[1])) == _untimed(heard)


def test_within_a_batch_the_last_sequence_moves_on() -> None:
    ours = Republisher("S", Republish(src=">", dest="r.>"))
    rows = [(seq, 7, subject, b"", b"x") for seq, subject in enumerate([b"a", b"b", b"a"], 5)]
    records = stored_records(make_messages(rows, 0, [6]))
    copies = ours.copies(records, {b"a": 2}.get)
    assert [(subject, b"Last-Sequence: 2" in head) for subject, head, _ in copies] == [
        (b"r.a", True),
        (b"r.a", False),
    ]
    assert b"Nats-Last-Sequence: 5\r\n" in copies[1][1]
    assert b"Nats-Time-Stamp: 1970-01-01T00:00:00.000000007Z\r\n" in copies[0][1]


def _never_seen(subject: bytes) -> None:
    return None


def test_other_subjects_and_other_entries_have_no_copies() -> None:
    ours = Republisher("S", Republish(src="a", dest="r"))
    assert ours.copies([Record(1, 1, b"b", b"", b"")], _never_seen) == []
    assert stored_records(decode(encode_expire(1, 1))) == []


def test_without_a_destination_nothing_is_republished() -> None:
    ours = Republisher("S", Republish(src="s.>"))
    assert ours.copies([Record(1, 7, b"s.a", b"", b"data")], lambda _: None) == []
