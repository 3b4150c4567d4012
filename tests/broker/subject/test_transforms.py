"""Subject mappings by example."""

import pytest

from jsctl.broker.errors import ConfigError
from jsctl.broker.subject.transforms import compile_transform, fnv1a32


@pytest.mark.parametrize(
    ("source", "destination", "subject", "mapped"),
    [
        (b"foo", b"bar", b"foo", b"bar"),
        (b"foo", b"bar", b"fox", None),
        (b"", b"", b"a.b", b"a.b"),
        (b"foo.*.*", b"bar.$2.$1", b"foo.a.b", b"bar.b.a"),
        (b"foo.*.*", b"bar.{{wildcard(2)}}.{{ Wildcard( 1 ) }}", b"foo.a.b", b"bar.b.a"),
        (b"foo.>", b"bar.>", b"foo.a.b", b"bar.a.b"),
        (b"foo.*.>", b"{{wildcard(1)}}.>", b"foo.a.b.c", b"a.b.c"),
        (b"*", b"p.{{partition(10,1)}}.$1", b"foo", b"p.3.foo"),
        (b"foo.*", b"p.{{partition(5)}}", b"foo.a", b"p.%d" % (fnv1a32(b"foo.a") % 5)),
        (b"*.*", b"{{partition(7,1,2)}}", b"a.b", b"%d" % (fnv1a32(b"ab") % 7)),
        (b"*", b"{{split(1,-)}}", b"-abc-def--ghi-", b"abc.def.ghi"),
        (b"*", b"{{splitFromLeft(1,3)}}", b"12345", b"123.45"),
        (b"*", b"{{SplitFromRight(1,3)}}", b"12345", b"12.345"),
        (b"*", b"{{splitFromLeft(1,9)}}", b"12345", b"12345"),
        (b"*", b"{{sliceFromLeft(1,3)}}", b"1234567890", b"123.456.789.0"),
        (b"*", b"{{sliceFromRight(1,3)}}", b"1234567890", b"1.234.567.890"),
        (b"*", b"{{sliceFromRight(1,5)}}", b"1234567890", b"12345.67890"),
        (b"*", b"{{left(1,2)}}.{{right(1,2)}}", b"12345", b"12.45"),
        (b"*", b"{{left(1,0)}}", b"12345", b"12345"),
        (b"*", b"{{partition(0,1)}}", b"12345", b"0"),
        (b"*", b"{{partition(-3,1)}}", b"a", b"3826002220"),
        (b"a", b"b.{{random(0)}}", b"a", b"b.0"),
    ],
)
def test_mapping(source: bytes, destination: bytes, subject: bytes, mapped: bytes | None) -> None:
    assert compile_transform(source, destination).apply(subject) == mapped


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (b"a..b", b"c"),
        (b"a", b"b."),
        (b"a", b"b.>"),
        (b"a.*", b"b.*"),
        (b"a.*", b"$2"),
        (b"a.*", b"$0"),
        (b"a.*", b"$" + b"9" * 5_000),
        (b"a.*", b"{{wildcard(" + b"9" * 5_000 + b")}}"),
        (b"a.*", b"{{partition(" + b"9" * 5_000 + b",1)}}"),
        (b"a.*", b"{{wildcard(x)}}"),
        (b"a.*", b"{{unknown(1,1)}}"),
        (b"a.*", b"{{left(1)}}"),
        (b"a.*", b"{{left(1,2}}"),
        (b"a.*", b"{{split(1,)}}"),
        (b">", b"b.c"),
        (b"a.*.>", b"b.$1"),
        (b"a", b"{{random(x)}}"),
        (b"a", b"{{random(1,2)}}"),
    ],
)
def test_bad_mappings_are_refused(source: bytes, destination: bytes) -> None:
    with pytest.raises(ConfigError):
        compile_transform(source, destination)


def test_random_numbers_are_all_there_and_follow_from_their_count() -> None:
    one, other = (compile_transform(b"a.*", b"b.{{Random(3)}}.$1") for _ in range(2))
    found = [one.apply(b"a.x") for _ in range(300)]
    assert found == [other.apply(b"a.x") for _ in range(300)]
    counts = [found.count(b"b.%d.x" % number) for number in range(3)]
    assert sum(counts) == 300
    assert min(counts) > 60


def test_known_hashes() -> None:
    assert fnv1a32(b"") == 0x811C9DC5
    assert fnv1a32(b"a") == 0xE40C292C
    assert fnv1a32(b"foobar") == 0xBF9CF968
