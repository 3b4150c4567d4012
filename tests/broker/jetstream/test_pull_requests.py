"""Pull requests: what their payloads mean, and the order in which they are served."""

import pytest

from jsctl.api.pull import PriorityGroup
from jsctl.broker.jetstream.pull import PullRequest, WaitQueue, parse

NOW = 1_000_000


@pytest.mark.parametrize(
    ("payload", "batch"), [(b"", 1), (b"7", 7), (b" 12 ", 12), (b"+NXT?", 1), (b"1.5", 1)]
)
def test_plain_payloads(payload: bytes, batch: int) -> None:
    request = parse(b"in", payload, NOW)
    assert isinstance(request, PullRequest)
    assert (request.left, request.expires_ns, request.grouped) == (batch, 0, False)


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
        queue.served(1)
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
