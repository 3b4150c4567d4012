"""Whom a message may concern: looked up, and always whom a look at all consumers finds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.api.consumer import ConsumerConfig
from jsctl.broker.assets.replicas.absent_consumer import AbsentConsumer
from jsctl.broker.assets.replicas.interests import Interests, Watchers, concerns_of
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.subject.matching import TOKENS_MAX, Filters
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import consumer, stream

LONG = ".".join(["a"] * TOKENS_MAX) + ".*"
SUBJECTS = (b"a", b"b", b"a.a", b"a.b", b"b.a", LONG.replace("*", "b").encode())
PATTERNS = (b">", b"*", b"a", b"a.*", b"*.a", b"a.>", LONG.encode())
NAMES = ("C", "D", "E", "F")

filters = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3).map(Filters)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(NAMES),
            st.none() | filters,
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_who_is_interested_is_found(changes: list[tuple[int, str, Filters | None, bool]]) -> None:
    touched = set[str]()
    maps = [Watchers(touched) for _ in range(3)]
    maps[0]["C"] = AbsentConsumer(Filters((b"a",)))
    interests = Interests(maps, touched)
    for place, name, wanted, clears in changes:
        if wanted is not None:
            maps[place][name] = AbsentConsumer(wanted)
        elif clears:
            maps[place].clear()
        elif name in maps[place]:
            del maps[place][name]
        else:
            assert maps[place].pop(name, None) is None
        for subject in SUBJECTS:
            found = [one for one in interests.about(subject) if one.interested(subject)]
            expected = [one for one in interests.watchers.values() if one.interested(subject)]
            assert sorted(map(id, found)) == sorted(map(id, expected))
        assert interests.all_take_all == all(one.takes_all for one in interests.watchers.values())


@pytest.mark.parametrize(
    "change",
    [
        Watchers.popitem,
        Watchers.clear,
        lambda one: one.pop("C"),
        lambda one: one.update(C=AbsentConsumer(Filters((b"b",)))),
        lambda one: one.setdefault("D", AbsentConsumer(Filters((b"b",)))),
    ],
)
def test_nothing_changes_unseen(change: Callable[[Watchers], object]) -> None:
    touched = set[str]()
    watchers = Watchers(touched)
    watchers["C"] = AbsentConsumer(Filters((b"a",)))
    touched.clear()
    change(watchers)
    assert len(touched) == 1


@dataclass
class Known:
    """A consumer, as its log has it."""

    filters: tuple[str, ...]
    dead_letters: bool = False

    def concerns(self, *coming: bytes) -> Any:
        config = ConsumerConfig(name="C", filter_subjects=self.filters)
        made = Consumer("S", "C", config)
        made.dead_letters_to = b"dead" if self.dead_letters else b""
        return concerns_of(made, Filters(coming) if coming else None)


def test_filters_that_come_count_beside_those_that_are() -> None:
    assert Known(("a", "b.*")).concerns(b"c") == [b"a", b"b.*", b"c"]
    assert Known(("a",)).concerns(b">") is None
    assert Known(()).concerns(b"a") is None
    assert Known((LONG,)).concerns() is None
    assert Known(("a",), dead_letters=True).concerns() is None


# In a server


@pytest.fixture(params=["workqueue", "interest"])
def client(request: pytest.FixtureRequest) -> PlayClient:
    """Of a server with a stream S and consumers C0, C1, C2 of a subject each."""
    made = NodePlay().connect("a")
    body = stream(replicas=1, retention=request.param)
    assert "error" not in made.ask("$JS.API.STREAM.CREATE.S", **body)
    for number in range(3):
        config = consumer(f"C{number}", filter_subject=f"s.{number}.>")
        assert "error" not in made.ask(
            f"$JS.API.CONSUMER.CREATE.S.C{number}.s.{number}.>", **config
        )
    made.play.run(1)
    return made


def left(client: PlayClient) -> int:
    """Messages in the stream."""
    return int(client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"])


def take(client: PlayClient, number: int) -> list[bytes]:
    """Messages that a consumer is given, and acknowledges."""
    before = len(client.messages)
    client.subscribe(f"got.{before}")
    name = f"$JS.API.CONSUMER.MSG.NEXT.S.C{number}"
    client.publish(name, b'{"batch":9,"no_wait":true}', f"got.{before}")
    client.play.run(1)
    given = [one for one in client.messages[before:] if one[1].startswith("$JS.ACK")]
    for _, reply, _ in given:
        client.publish(reply, b"+ACK")
    client.play.run(1)
    return [payload for *_, payload in given]


def test_what_one_needed_goes_when_it_is_done(client: PlayClient) -> None:
    for number in (0, 1, 1):
        client.request(f"s.{number}.x", b"%d" % number)
    assert take(client, 1) == [b"1", b"1"]
    assert left(client) == 1
    assert take(client, 0) == [b"0"]
    assert left(client) == 0


def test_who_has_other_filters_needs_what_is_new_to_it(client: PlayClient) -> None:
    config = consumer("C1", filter_subject="s.new.>")
    client.ask("$JS.API.CONSUMER.CREATE.S.C1.s.new.>", action="update", **config)
    client.request("s.new.x", b"new")
    assert left(client) == 1
    assert take(client, 0) == []
    assert take(client, 1) == [b"new"]
    assert left(client) == 0


def test_who_comes_is_known_and_who_goes_is_not(client: PlayClient) -> None:
    config = consumer("C3", filter_subject="s.3.>")
    assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.C3.s.3.>", **config)
    client.request("s.3.x", b"3")
    assert take(client, 3) == [b"3"]
    assert left(client) == 0
    client.request("s.3.x", b"3")
    assert left(client) == 1
    client.ask("$JS.API.CONSUMER.DELETE.S.C3")
    client.play.run(1)
    work_queue = client.ask("$JS.API.STREAM.INFO.S")["config"]["retention"] == "workqueue"
    assert left(client) == work_queue, "a work queue waits for somebody else"
