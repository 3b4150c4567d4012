"""The chain of a stream goes with its archive, and an archive that does not fit it is refused."""

import pytest

from jsctl.backups.s2 import BrokenStream
from jsctl.broker.jetstream.chains import chain as chains
from jsctl.broker.jetstream.chains.chain import BLOCK_SEQS, Chain, leaf_of
from jsctl.broker.jsapi.archives import archived_chain
from jsctl.broker.jsapi.archives.archived_chain import ChainBuild, document_of
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.record import FRAME_HEADER_BYTES, Row
from jsctl.broker.store.seqset import SeqSet

COUNT = 2 * BLOCK_SEQS + 10


def rows(count: int = COUNT) -> list[Row]:
    return [(seq, 10, b"s.1", b"", b"%d" % seq) for seq in range(1, count + 1)]


def chain_of(some: list[Row]) -> Chain:
    chain = Chain(0)
    for row in some:
        chain.add_leaf(row[0], leaf_of(frame_of([row]).buffer[FRAME_HEADER_BYTES:]))
    return chain


def rebuilt(document: object, some: list[Row]) -> Chain:
    build = ChainBuild()
    build.told(document)
    for row in some:
        build.add(row)
    return build.finish()


def test_what_was_removed_is_told_and_the_chain_goes_on() -> None:
    chain, gone = chain_of(rows()), SeqSet([(0, 3), (7, 9), (COUNT, COUNT)])
    kept = [row for row in rows() if row[0] not in gone]
    again = rebuilt(document_of(chain, gone), kept)
    assert (again.seq, again.link) == (chain.seq, chain.link)
    assert [one.places for one in again.blocks] == [one.places for one in chain.blocks]
    assert rebuilt(None, kept[:5]).seq == kept[4][0]


def test_a_chain_with_many_removed_begins_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archived_chain, "REMOVED_TOLD", 5)
    chain, gone = chain_of(rows()), SeqSet([(2, BLOCK_SEQS + 20)])
    document = document_of(chain, gone)
    assert document["anchor_seq"] == BLOCK_SEQS - 1
    again = rebuilt(document, [row for row in rows() if row[0] not in gone])
    assert (again.link, again.anchor_seq) == (chain.link, BLOCK_SEQS - 1)


def test_a_chain_that_is_made_anew_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "LEAVES_MAX", BLOCK_SEQS)
    whole, again = chain_of(rows()), rebuilt(None, rows())
    assert again.count <= 2 * BLOCK_SEQS
    assert (again.seq, again.link) == (whole.seq, whole.link)


def test_what_is_missing_stays_missing() -> None:
    chain = chain_of(rows(20))
    chain.missing.add(5)
    kept = [row for row in rows(20) if row[0] != 5]
    assert list(rebuilt(document_of(chain, SeqSet([(5, 5)])), kept).missing) == [5]


@pytest.mark.parametrize("kind", ["changed", "left out", "put in"])
def test_messages_that_do_not_fit_are_refused(kind: str) -> None:
    document, some = document_of(chain_of(rows(20)), SeqSet()), rows(20)
    if kind == "changed":
        some[4] = (*some[4][:4], b"other")
    elif kind == "left out":
        del some[4]
    else:
        some.append((21, 10, b"s.1", b"", b""))
    with pytest.raises(BrokenStream, match="do not fit its chain"):
        rebuilt(document, some)


@pytest.mark.parametrize(
    "change",
    [
        {"anchor": "ab"},
        {"seq": -1},
        {"removed": [[3, "00"]]},
        {"removed": None},
        {"since": "1"},
        {"removed": [[3, "00" * 32], [3, "00" * 32]]},
        {"missing": [[1]]},
    ],
)
def test_what_cannot_be_a_chain_is_refused(change: dict[str, object]) -> None:
    document = document_of(chain_of(rows(5)), SeqSet()) | change
    with pytest.raises(BrokenStream, match="cannot be read"):
        rebuilt(document, rows(5))
    with pytest.raises(BrokenStream, match="cannot be read"):
        rebuilt([], rows(5))
