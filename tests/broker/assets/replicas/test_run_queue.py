"""Turns are shared: who has much to do does not keep others waiting, and is not forgotten."""

from dataclasses import dataclass

from jsctl.broker.assets.replicas.run_queue import (
    ALONE_AFTER_NS,
    DELIVERIES_MIN,
    SEARCH_IDLE_NS,
    SEARCHED_MAX,
    SEARCHES_MAX,
    SHORT_SEARCHES_MAX,
    SHORT_TURN_MESSAGES_MAX,
    TURN_MESSAGES_MAX,
    RunQueue,
)

NOW = 10 * ALONE_AFTER_NS


@dataclass
class Runner:
    """A replica that is only named here."""

    due_ns: int | None = None

    def run(self) -> None:
        """Nothing."""

    def next_due_ns(self) -> int | None:
        """When it is due."""
        return self.due_ns


def turn(queue: RunQueue, now_ns: int = NOW, *, others: bool = False) -> list[str]:
    """Who runs in a turn."""
    queue.begin(now_ns, others=others)
    runners = queue.take()
    for name, runner in runners.items():
        queue.ran(name, runner)
    return list(runners)


def test_who_is_to_go_on_in_the_next_turn_does_not_run_again_in_this_one() -> None:
    queue, replica = RunQueue(), Runner()
    queue.wake_again("C", replica)
    queue.wake("C", replica)
    assert queue.take() == {}
    assert turn(queue) == ["C"]
    assert turn(queue) == []
    queue.wake("C", replica)
    assert turn(queue) == ["C"]


def test_what_others_wait_for_goes_first_in_every_second_turn() -> None:
    queue, long, short = RunQueue(), Runner(), Runner()
    ran = []
    for _ in range(4):
        queue.wake_again("long", long)
        queue.wake("short", short)
        ran.append(turn(queue))
    assert ran == [["short"], ["short", "long"], ["short"], ["short", "long"]]


def test_the_disk_and_peers_count_as_others() -> None:
    queue, replica = RunQueue(), Runner()
    queue.wake_again("C", replica)
    assert turn(queue, others=True) == []
    assert turn(queue, others=True) == ["C"]
    assert turn(queue, others=True) == []


def test_a_turns_messages_are_shared() -> None:
    queue = RunQueue()
    for count, share in (
        (1, TURN_MESSAGES_MAX),
        (4, TURN_MESSAGES_MAX // 4),
        (10_000, DELIVERIES_MIN),
    ):
        for number in range(count):
            queue.wake(f"C{number}", Runner())
        assert len(turn(queue)) == count
        assert queue.deliveries == share


def test_turns_are_short_while_others_have_work() -> None:
    queue, long, short = RunQueue(), Runner(), Runner()
    queue.wake_again("long", long)
    queue.wake("short", short)
    turn(queue)
    assert queue.deliveries == SHORT_TURN_MESSAGES_MAX
    queue.wake_again("long", long)
    turn(queue, NOW + ALONE_AFTER_NS + 1)
    assert queue.deliveries == TURN_MESSAGES_MAX


def test_a_deadline_wakes_and_is_moved_or_cancelled_by_the_next_run() -> None:
    queue, replica = RunQueue(), Runner(due_ns=NOW + 5)
    queue.wake("S", replica)
    assert turn(queue) == ["S"] and queue.next_due_ns() == NOW + 5
    assert turn(queue, NOW + 4) == []
    replica.due_ns = NOW + 9
    assert turn(queue, NOW + 5) == ["S"] and queue.next_due_ns() == NOW + 9
    replica.due_ns = None
    queue.wake("S", replica)
    assert turn(queue, NOW + 6) == ["S"] and queue.next_due_ns() is None
    assert turn(queue, NOW + 10) == []


def test_who_is_removed_never_runs_again() -> None:
    for sleeps in (True, False):
        queue = RunQueue()
        gone, stays = Runner(NOW + 1 if sleeps else None), Runner()
        queue.wake("gone", gone)
        turn(queue)
        queue.wake("gone", gone)
        queue.wake_again("gone", gone)
        queue.wake("stays", stays)
        queue.forget("gone")
        assert turn(queue, NOW + 2) == ["stays"] and queue.next_due_ns() is None


def test_nobody_runs_after_all_were_stopped() -> None:
    queue = RunQueue()
    queue.wake("slept", Runner(due_ns=NOW + 1))
    turn(queue)
    queue.wake("dirty", Runner())
    queue.wake_again("later", Runner())
    queue.clear()
    assert not queue.waiting
    assert turn(queue, NOW + 2) == [] and queue.next_due_ns() is None


def test_few_look_for_their_start_at_a_time_in_their_order() -> None:
    queue = RunQueue()
    names = [f"c{number}" for number in range(5)]
    found: list[str] = []

    def search(*, ends: bool) -> list[str]:
        """A turn in which those who may look for their start; whether they find it."""
        able = [name for name in turn(queue) if queue.may_search(name, Runner())]
        for name in able:
            if ends:
                queue.searched(name)
                found.append(name)
            else:
                queue.wake_again(name, Runner())
        return able

    for name in names:
        queue.wake(name, Runner())
    assert search(ends=False) == names[:SEARCHES_MAX]
    assert search(ends=False) == names[:SEARCHES_MAX], "who has begun goes on"
    queue.forget("c2")
    while queue.waiting:
        assert len(search(ends=True)) <= SEARCHES_MAX
    assert found == ["c0", "c1", "c3", "c4"]


def test_who_is_called_and_does_not_come_keeps_nobody_waiting() -> None:
    queue = RunQueue()
    for number in range(6):
        queue.may_search(f"c{number}", Runner())
    assert turn(queue) == [], "two have not found theirs"
    queue.looked(SEARCHED_MAX + 1)
    queue.searched("c0")
    queue.searched("c1")
    called = [turn(queue) for _ in range(2)]
    assert [{*names} for names in called] == [{"c2", "c3"}, {"c4", "c5"}]
    assert not queue.waiting


def test_who_does_not_go_on_to_look_lets_others_do_so() -> None:
    queue = RunQueue()
    turn(queue)
    for number in range(SEARCHES_MAX + 1):
        queue.may_search(f"c{number}", Runner())
    assert turn(queue, NOW + SEARCH_IDLE_NS) == []
    queue.may_search("c0", Runner())
    assert turn(queue, NOW + SEARCH_IDLE_NS + 1) == [f"c{SEARCHES_MAX}"]


def test_more_look_for_their_start_at_a_time_where_that_is_little_each() -> None:
    queue, names = RunQueue(), [f"c{number}" for number in range(100)]
    turn(queue)
    for name in names:
        queue.wake(name, Runner())

    def search(subjects: int) -> int:
        able = 0
        for name in turn(queue):
            if queue.may_search(name, Runner()):
                queue.looked(subjects)
                queue.searched(name)
                able += 1
        return able

    assert [search(10) for _ in range(5)] == [2, 4, 8, 16, SHORT_SEARCHES_MAX]
    assert search(SEARCHED_MAX // 2) == 3, "nobody begins when so many were looked at"
    assert search(10) == SEARCHES_MAX
    found = 2 + 4 + 8 + 16 + SHORT_SEARCHES_MAX + 3 + SEARCHES_MAX
    while queue.waiting:
        found += search(10)
    assert found == len(names)
