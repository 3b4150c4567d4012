"""Names of sources and what the header of a message says, as nats-server has them."""

import pytest

from jsctl.api.stream import ExternalStream, StreamConsumerSource, StreamSource, SubjectTransform
from jsctl.broker.jetstream.sourcing.names import (
    index_name,
    mirror_consumer,
    read_source_header,
    source_blocks,
    source_consumer,
)
from jsctl.broker.jetstream.streams.positions import (
    SourcePosition,
    decode_positions,
    encode_positions,
)
from jsctl.broker.jetstream.streams.publish_headers import STREAM_SOURCE
from jsctl.broker.protocol import headers as blocks

O = StreamSource(name="O")  # noqa: E741 - the stream


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (O, "O > >"),
        (StreamSource(name="O", filter_subject="a.*"), "O a.* >"),
        (
            StreamSource(
                name="O",
                subject_transforms=(SubjectTransform(src="a", dest="b"), SubjectTransform()),
            ),
            "O a\f> b\f>",
        ),
        (
            StreamSource(name="O", external=ExternalStream(api="other.api", deliver="d")),
            "O:en3nYlWg > >",
        ),
        (
            StreamSource(name="O", consumer=StreamConsumerSource(name="other.api")),
            "O:C=en3nYlWg > >",
        ),
    ],
)
def test_index_names(source: StreamSource, expected: str) -> None:
    assert index_name(source) == expected


def test_consumers_have_stable_names() -> None:
    """As nats-server 2.15.1 names those of streams M, S and N in its default account."""
    assert mirror_consumer("M", "$G", "") == "JS_MIRROR_ih8eMwqr"
    assert mirror_consumer("ME", "$G", "") == "JS_MIRROR_BaJNsdTu"
    assert source_consumer("S", "$G", "", O, [O]) == "JS_SRC_N6lXlrSF"
    filtered = StreamSource(name="O", filter_subject="a")
    names = {source_consumer("S", "$G", "", one, [O, filtered]) for one in (O, filtered)}
    assert len(names) == 2 and "JS_SRC_N6lXlrSF" not in names


@pytest.mark.parametrize("identity", ["", "Ab12Cd34"])
def test_headers_are_read_as_they_were_made(identity: str) -> None:
    key = "O a\fb c\fd"
    told = f"O 17 a\fb c\fd a {identity}".rstrip().encode()
    own = b"NATS/1.0\r\nX: 1\r\n\r\n"
    bare, more = source_blocks(key, [17, 17], [b"a", b"a"], identity, [b"", own])
    assert bare == b"NATS/1.0\r\nNats-Stream-Source: %b\r\n\r\n" % told
    assert more == b"NATS/1.0\r\nX: 1\r\nNats-Stream-Source: %b\r\n\r\n" % told
    assert read_source_header(told) == (key, SourcePosition(17, identity))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"O 17", ("O", SourcePosition(17, ""))),
        (b"$JS.ACK.O.C.1.17.3.99.0", ("O", SourcePosition(17, ""))),
        (b"$JS.ACK.d.acc.O.C.1.17.3.99.0.token", ("O", SourcePosition(17, ""))),
        (b"O", None),
        (b"O 17 >", None),
        (b"O x > > o", None),
        (b"$JS.ACK.short", None),
        (b"\xff", None),
        (b"O 9" + b"9" * 30, None),
    ],
)
def test_older_headers_and_what_is_none(
    value: bytes, expected: tuple[str, SourcePosition] | None
) -> None:
    assert read_source_header(value) == expected


def test_positions_in_bytes() -> None:
    positions = {"O > >": SourcePosition(1 << 60, "I"), "P a é": SourcePosition(0, "")}
    data = encode_positions(positions)
    assert decode_positions(b"xx" + data + b"rest", 2) == (positions, 2 + len(data))


@pytest.mark.parametrize("identity", ["", "Ab12Cd34"])
def test_destinations_with_spaces_are_known_by_their_headers(identity: str) -> None:
    """However they are written: nats-server writes them as they are."""
    dest = "b.{{partition(3, 1)}}.{{ wildcard(1) }}"
    transforms = (SubjectTransform(src="a.*", dest=dest), SubjectTransform(src="c", dest="d"))
    key = index_name(StreamSource(name="O", subject_transforms=transforms))
    assert key == "O a.*\fc b.{{partition(3,1)}}.{{wildcard(1)}}\fd"
    theirs = f"O 7 a.*\fc {dest}\fd a.1 {identity}".strip().encode()
    (block,) = source_blocks(key, [7], [b"a.1"], identity, [b""])
    for header in (blocks.get(block, STREAM_SOURCE) or b"", theirs):
        assert read_source_header(header) == (key, SourcePosition(7, identity))
