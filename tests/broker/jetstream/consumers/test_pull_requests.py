"""Pull requests: what their payloads mean, and the order in which they are served."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.pull import PriorityGroup
from jsctl.api.words import AckPolicy
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.defaults import with_defaults
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery
from jsctl.broker.jetstream.consumers.dispatch import pull_dispatcher as pull_desk
from jsctl.broker.jetstream.consumers.dispatch.pull import PullRequest, WaitQueue, parse
from jsctl.broker.jetstream.consumers.dispatch.pull_dispatcher import PullDispatcher
from jsctl.broker.protocol.deliveries import Deliveries, OutgoingMessage, singly
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from tests.support.consumer_play import Play

NOW = 1_000_000


@pytest.mark.parametrize(
    ("payload", "batch"), [(b"", 1), (b"7", 7), (b" 12 ", 12), (b"+NXT?", 1), (b"1.5", 1)]
)
def test_plain_payloads(payload: bytes, batch: int) -> None:
    request = parse(b"in", payload, NOW)
    assert isinstance(request, PullRequest)
    assert (request.left, request.expires_ns, request.grouped) == (batch, 0, False)


@pytest.mark.parametrize("payload", ["0", "-5", "-1000000"])
def test_a_plain_pull_for_none_gets_one_and_keeps_nobody_waiting(payload: str) -> None:
    play = Play()
    play.run("consumer ack_wait=1s\npublish a 2\npull first 2\ntick 2s")
    heard = play.run(f"pull odd {payload}\npull second 1\nstate").splitlines()
    assert [line.split()[1] for line in heard[:2]] == ["odd", "second"]
    assert heard[2].endswith("waiting=0")


@pytest.mark.parametrize("payload", ["1", '{"batch":1,"expires":3600000000000}'])
def test_pulls_of_clients_that_are_gone_keep_nobody_out(payload: str) -> None:
    play = Play()
    play.run(f"consumer max_waiting=2\npull a {payload}\npull b {payload}\ndeaf a b\ntick 2s")
    assert play.run(f"pull c {payload}\npublish x 1").split()[:3] == ["->", "c", "x"]


def test_a_full_payload() -> None:
    payload = (
        b'{"batch":5,"expires":1000,"max_bytes":99,"no_wait":true,"idle_heartbeat":400,'
        b'"group":"g","id":"pin","priority":3,"min_pending":4,"min_ack_pending":5}'
    )
    request = parse(b"in", payload, NOW)
    assert isinstance(request, PullRequest)
    assert (request.left, request.bytes_left, request.limited) == (5, 99, True)
    assert (request.expires_ns, request.beat_at_ns) == (NOW + 1000, NOW + 400)
    assert request.no_wait and request.pin == "pin"
    assert request.group == PriorityGroup(
        group="g", id="pin", priority=3, min_pending=4, min_ack_pending=5
    )


@pytest.mark.parametrize("payload", [b"{", b'{"batch":"x"}', b'{"idle_heartbeat":5,"expires":9}'])
def test_bad_payloads(payload: bytes) -> None:
    assert isinstance(parse(b"in", payload, NOW), str)


def queue_of(*requests: tuple[str, int, int], prioritized: bool = False) -> WaitQueue:
    queue = WaitQueue(10, prioritized=prioritized, now_ns=NOW)
    for reply, left, priority in requests:
        group = PriorityGroup(priority=priority)
        assert queue.add(PullRequest(reply.encode(), left, group=group))
    return queue


def served(queue: WaitQueue, count: int) -> str:
    order = ""
    for _ in range(count):
        order += queue.requests[0].reply.decode()
        queue.served(queue.requests[0], NOW)
    return order


def test_round_robin() -> None:
    assert served(queue_of(("a", 3, 0), ("b", 1, 0), ("c", 2, 0)), 6) == "abcaca"


def test_lower_priorities_first() -> None:
    queue = queue_of(("a", 1, 5), ("b", 2, 1), ("c", 1, 1), ("d", 1, 0), prioritized=True)
    assert served(queue, 5) == "dbcba"


def test_a_full_queue_refuses() -> None:
    queue = WaitQueue(1, prioritized=False, now_ns=NOW)
    assert queue.add(PullRequest(b"a", 1))
    assert not queue.add(PullRequest(b"b", 1))
    assert queue.wanted == 1


RARE = st.sampled_from([False, False, False, False, True])
REQUESTS = st.lists(
    st.tuples(
        st.integers(1, 9), st.sampled_from([0, 0, 60, 200, 100_000]), RARE, RARE, st.booleans()
    ),
    min_size=1,
    max_size=5,
)


def desk_with(
    requests: list[tuple[int, int, bool, bool, bool]],
) -> tuple[PullDispatcher, ConsumerDelivery]:
    """(messages, max_bytes, already expired, nobody listens, heartbeats) each."""
    config = with_defaults(ConsumerConfig(name="C", ack_policy=AckPolicy.NONE))
    consumer = Consumer("S", "C", config)
    store = MemoryStore()
    rows = [(seq, NOW, b"a", b"", b"x" * (seq % 40)) for seq in range(1, 21)]
    store.append(frame_of(rows), 1)
    deaf = {b"in%d" % n for n, one in enumerate(requests) if one[3]}
    desk = PullDispatcher(consumer, lambda reply: reply not in deaf, lambda: "id", NOW)
    for number, (batch, most, expired, _, beats) in enumerate(requests):
        request = PullRequest(b"in%d" % number, batch, most, limited=most > 0)
        request.expires_ns = NOW - 1 if expired else 0
        request.heartbeat_ns = 5 if beats else 0
        assert desk.queue.add(request)
    delivery = ConsumerDelivery(consumer, store)
    delivery.progress.start(1, 0, [])
    delivery.cursor = 1
    return desk, delivery


@given(REQUESTS, st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_many_at_one_go_are_as_one_by_one(
    requests: list[tuple[int, int, bool, bool, bool]], budgets: list[int]
) -> None:
    told = []
    for together, bulk in ((2, True), (32, True), (32, False)):
        desk, delivery = desk_with(requests)
        said: list[OutgoingMessage] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pull_desk, "TOGETHER_MIN", together)
            for budget in budgets:
                for count in [budget] if bulk else [1] * budget:
                    desk.serve(delivery, NOW, count, said)
        assert together == 2 or not any(isinstance(one, Deliveries) for one in said)
        left = [(r.reply, r.left, r.bytes_left, r.beat_at_ns) for r in desk.queue.requests]
        told.append((singly(said), left, delivery.cursor, delivery.num_pending))
    assert told[0] == told[1] == told[2]
