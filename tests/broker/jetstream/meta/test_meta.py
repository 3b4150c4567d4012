"""The meta state machine: filing, the overlay of a leader, changes, snapshots."""

import json
from dataclasses import replace

import pytest

from jsctl.api.cluster import Placement
from jsctl.api.codec import dumps
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig, StreamSource
from jsctl.broker.jetstream.meta import wording
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    GroupAssignment,
    Origin,
    StreamAssignment,
    stream_document,
    stream_from,
)
from jsctl.broker.jetstream.meta.entries import (
    MetaServer,
    add_server,
    assign_consumer,
    assign_stream,
    remove_consumer,
    remove_server,
    remove_stream,
    settle_group,
)
from jsctl.broker.jetstream.meta.state import ChangeKind, Meta, MetaChange
from jsctl.broker.jetstream.requests import ApiRequest, AskerClaims, ClientInfo

CLIENT = ClientInfo(account="A", user="u", server="n1")
REQUEST = ApiRequest("A", b"$JS.API.STREAM.CREATE.S", b"_INBOX.\xff", b"", b"{}", CLIENT, "p1")


def _group(*peers: str, former: tuple[str, ...] = ()) -> GroupAssignment:
    return GroupAssignment("S-R3F-abc", peers, "file", "C1", former=former, incarnations={"a": 3})


def _stream(name: str = "S", **config: object) -> StreamAssignment:
    made = StreamConfig(name=name, subjects=(name.lower(),))
    made = replace(made, **config)  # type: ignore[arg-type]
    return StreamAssignment("A", name, made, _group("a", "b", "c"), 5, CLIENT, REQUEST)


def _consumer(name: str = "D", stream: str = "S") -> ConsumerAssignment:
    config = ConsumerConfig(name=name, durable_name=name)
    return ConsumerAssignment("A", stream, name, config, _group("a"), 6, CLIENT, None)


def _kinds(changes: list[MetaChange]) -> list[tuple[ChangeKind, str, str]]:
    return [(change.kind, change.stream, change.consumer) for change in changes]


def _filled() -> Meta:
    meta = Meta()
    for index, entry in enumerate(
        [
            add_server(MetaServer("p1", "n1", 1, "C1")),
            assign_stream(_stream()),
            assign_stream(_stream("T")),
            assign_consumer(_consumer()),
            assign_consumer(_consumer("E")),
        ],
        start=1,
    ):
        assert meta.apply(index, entry) == 1
    return meta


def test_assets_are_filed_and_reported_as_changes() -> None:
    meta = _filled()
    assert _kinds(meta.take_changes()) == [
        (ChangeKind.ADDED, "", ""),
        (ChangeKind.ADDED, "S", ""),
        (ChangeKind.ADDED, "T", ""),
        (ChangeKind.ADDED, "S", "D"),
        (ChangeKind.ADDED, "S", "E"),
    ]
    assert meta.take_changes() == []
    assert list(meta.streams("A")) == ["S", "T"]
    assert list(meta.consumers("A", "S")) == ["D", "E"]
    assert meta.accounts() == ["A"]
    found = meta.stream("A", "S")
    assert found is not None
    assert found.request is not None
    assert found.request == REQUEST
    made = _stream()
    made = replace(made, request=None, group=replace(made.group, since=2))
    assert replace(found, request=None) == made


def test_removing_a_stream_removes_its_consumers_first() -> None:
    meta = _filled()
    meta.take_changes()
    assert meta.apply(9, remove_stream("A", "S")) == 1
    assert _kinds(meta.take_changes()) == [
        (ChangeKind.REMOVED, "S", "D"),
        (ChangeKind.REMOVED, "S", "E"),
        (ChangeKind.REMOVED, "S", ""),
    ]
    assert meta.apply(10, remove_stream("A", "S")) == 0
    assert meta.apply(11, remove_consumer("A", "S", "D")) == 0
    assert meta.apply(12, assign_consumer(_consumer())) == 0
    assert meta.consumers("A", "S") == {}
    assert [made.name for made in meta.assets()] == ["T"]


@pytest.mark.parametrize("claims", [None, AskerClaims("AB", "owner", ("a", "b"))])
def test_what_the_jwt_of_who_asked_says_is_kept_where_there_is_one(
    claims: AskerClaims | None,
) -> None:
    client = replace(CLIENT, claims=claims)
    made = replace(_stream(), client=client, request=replace(REQUEST, client=client))
    document = stream_document(made)
    assert stream_from(json.loads(dumps(document))) == made
    assert "claims" in document["client"] or claims is None  # type: ignore[operator]


def test_updates_carry_both_sides() -> None:
    meta = _filled()
    meta.take_changes()
    meta.apply(9, assign_stream(_stream(max_msgs=7)))
    (change,) = meta.take_changes()
    assert change.kind is ChangeKind.UPDATED
    assert isinstance(change.before, StreamAssignment)
    assert isinstance(change.after, StreamAssignment)
    assert (change.before.config.max_msgs, change.after.config.max_msgs) == (0, 7)
    assert list(meta.consumers("A", "S")) == ["D", "E"]


def test_mirrors_of_a_stream_are_known_in_flight_applied_and_after_a_restart() -> None:
    meta = _filled()
    mirror = assign_stream(_stream("M2", mirror=StreamSource(name="S")))
    meta.apply(9, assign_stream(_stream("M1", mirror=StreamSource(name="S"))))
    meta.note_in_flight([mirror])
    assert meta.mirrors("A", "S") == ["M1", "M2"]
    assert meta.mirrors("A", "T") == meta.mirrors("B", "S") == []
    meta.apply(10, mirror)
    assert meta.mirrors("A", "S") == ["M1", "M2"]
    other = Meta()
    other.restore(meta.snapshot())
    assert other.mirrors("A", "S") == ["M1", "M2"]
    promotion, removal = assign_stream(_stream("M1")), remove_stream("A", "M2")
    other.note_in_flight([promotion, removal])
    assert other.mirrors("A", "S") == []
    other.drop_in_flight()
    assert other.mirrors("A", "S") == ["M1", "M2"]
    other.apply(11, promotion)
    other.apply(12, removal)
    assert other.mirrors("A", "S") == []


def test_requests_see_what_is_in_flight_until_it_is_applied() -> None:
    meta = _filled()
    first, second = assign_stream(_stream("U")), assign_stream(_stream("U", max_msgs=1))
    consumer, removal = assign_consumer(_consumer("D", "U")), remove_stream("A", "T")
    meta.note_in_flight([first, second, consumer, removal])
    assert meta.in_flight == 4
    assert list(meta.streams("A")) == ["S", "U"]
    seen = meta.stream("A", "U")
    assert seen is not None and seen.config.max_msgs == 1
    assert list(meta.consumers("A", "U")) == ["D"]
    assert {made.name for made in meta.assets()} == {"S", "U", "D", "E"}
    meta.apply(6, first)
    seen = meta.stream("A", "U")
    assert seen is not None and seen.config.max_msgs == 1
    for index, entry in enumerate([second, consumer, removal], start=7):
        meta.apply(index, entry)
    assert meta.in_flight == 0
    assert list(meta.streams("A")) == ["S", "U"]


def test_a_stream_made_anew_in_flight_has_no_consumers_of_the_old_one() -> None:
    meta = _filled()
    entries = [remove_stream("A", "S"), assign_stream(_stream())]

    meta.note_in_flight(entries)

    assert meta.consumer("A", "S", "D") is None
    assert meta.consumers("A", "S") == {}
    for index, entry in enumerate(entries, 100):
        meta.apply(index, entry)
    assert meta.in_flight == 0
    assert meta.consumers("A", "S") == {}
    assert meta.streams("A").keys() == {"S", "T"}


def test_losing_leadership_forgets_what_was_in_flight() -> None:
    meta = _filled()
    meta.note_in_flight([remove_stream("A", "S"), remove_consumer("A", "S", "D")])
    assert meta.stream("A", "S") is None and meta.consumer("A", "S", "D") is None
    meta.drop_in_flight()
    assert meta.stream("A", "S") is not None and meta.consumer("A", "S", "D") is not None


def test_settling_drops_former_peers_once() -> None:
    meta = _filled()
    origin = Origin(("a", "b", "c"), 3, "C1", Placement(cluster="C1", tags=("x",)))
    moving = replace(
        _stream(), group=replace(_group("d", former=("a", "b", "c")), origin=origin, moving=True)
    )
    meta.apply(6, assign_stream(moving))
    assert not moving.group.settled
    assert moving.group.members == ("d", "a", "b", "c")
    sent = meta.stream("A", "S")
    assert sent is not None and sent.group.since == 6
    assert meta.apply(7, settle_group(_since(sent, 5))) == 0
    assert meta.apply(8, settle_group(sent)) == 1
    found = meta.stream("A", "S")
    assert found is not None
    assert found.group == replace(_group("d"), since=8)
    assert meta.apply(9, settle_group(sent)) == 0
    assert meta.apply(10, settle_group(_stream("nope"))) == 0


def _since(made: StreamAssignment, index: int) -> StreamAssignment:
    return replace(made, group=replace(made.group, since=index))


def test_a_late_word_that_a_group_settled_is_not_taken_for_a_later_move() -> None:
    meta = _filled()
    there = replace(_stream(), group=_group("a", former=("b", "c")))
    meta.apply(6, assign_stream(there))
    first = meta.stream("A", "S")
    assert first is not None
    meta.apply(7, settle_group(first))
    meta.apply(8, assign_stream(_stream()))
    meta.apply(9, assign_stream(there))

    assert meta.apply(10, settle_group(first)) == 0

    found = meta.stream("A", "S")
    assert found is not None and found.group.former == ("b", "c")


def test_a_request_sees_that_a_group_is_about_to_settle() -> None:
    meta = _filled()
    meta.apply(6, assign_stream(replace(_stream(), group=_group("a", former=("b", "c")))))
    moving = meta.stream("A", "S")
    assert moving is not None
    settling = settle_group(moving)
    meta.note_in_flight([settling])

    seen = meta.stream("A", "S")
    assert seen is not None and seen.group.former == ()
    update = assign_stream(replace(seen, revision=9))
    meta.note_in_flight([update, settling])
    meta.apply(7, settling)
    meta.apply(8, update)
    meta.apply(9, settling)

    found = meta.stream("A", "S")
    assert found is not None and found.revision == 9 and found.group.former == ()
    assert meta.in_flight == 0


def test_a_removed_server_stays_known_as_removed() -> None:
    meta = _filled()
    meta.take_changes()
    assert meta.apply(6, remove_server("p1")) == 1
    assert meta.apply(7, remove_server("p1")) == 0
    (change,) = meta.take_changes()
    assert change.server is not None and change.server.removed
    assert meta.apply(8, add_server(MetaServer("p1", "n1", 2, "C1"))) == 1
    (change,) = meta.take_changes()
    assert change.kind is ChangeKind.ADDED
    assert meta.apply(9, add_server(MetaServer("p1", "n1", 2, "C1"))) == 0


@pytest.mark.parametrize("at_once", [1, 2, 128])
def test_a_snapshot_is_worded_in_portions_of_what_there_was(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wording, "WORDED_AT_ONCE", at_once)
    meta = _filled()
    before, portions = meta.snapshot(), meta.portions()
    told = [next(portions)]
    meta.apply(6, remove_stream("A", "S"))
    meta.apply(7, assign_stream(_stream("U")))
    told += portions
    assert b"".join(told) == before != meta.snapshot()
    assert len(told) == {1: 4, 2: 2, 128: 1}[at_once]
    assert list(json.loads(before)) == ["applied", "servers", "streams", "consumers"]
    assert Meta().snapshot() == b'{"applied":0,"servers":[],"streams":[],"consumers":[]}'


def test_a_snapshot_restores_everything_and_reports_the_differences() -> None:
    meta = _filled()
    data = meta.snapshot()
    other = Meta()
    other.apply(1, assign_stream(_stream("gone")))
    other.apply(2, assign_stream(_stream("S", max_msgs=9)))
    other.take_changes()
    other.restore(data)
    assert other.snapshot() == data
    assert _kinds(other.take_changes()) == [
        (ChangeKind.REMOVED, "gone", ""),
        (ChangeKind.UPDATED, "S", ""),
        (ChangeKind.ADDED, "T", ""),
        (ChangeKind.ADDED, "S", "D"),
        (ChangeKind.ADDED, "S", "E"),
        (ChangeKind.ADDED, "", ""),
    ]
    other.restore(data)
    assert other.take_changes() == []


def test_a_removal_may_be_of_one_group_alone() -> None:
    """What was found unused may be gone, and another one of its name be there."""
    meta = _filled()
    later = replace(_consumer(), group=replace(_group("a"), name="later"))
    wanted = [
        remove_consumer("A", "S", "D", _group().name),
        assign_consumer(later),
        remove_consumer("A", "S", "D", _group().name),
    ]
    meta.note_in_flight(wanted)
    foreseen = meta.consumer("A", "S", "D")
    assert foreseen is not None and foreseen.group.name == "later"
    assert [meta.apply(index, entry) for index, entry in enumerate(wanted, 20)] == [1, 1, 0]
    assert meta.in_flight == 0 and "D" in meta.consumers("A", "S")
    assert meta.apply(30, remove_consumer("A", "S", "D", "later")) == 1
