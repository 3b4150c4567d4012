"""Turns are shared: who has much to do does not keep others waiting, and is not forgotten."""

import random
from typing import cast

from jsctl.broker.assets.replica_context import (
    ALONE_AFTER_NS,
    DELIVERIES_MIN,
    SHORT_TURN_MESSAGES_MAX,
    TURN_MESSAGES_MAX,
    AccountTraffic,
    Quota,
    ReplicaContext,
)
from jsctl.broker.replication.groups import Groups
from tests.support.sim_disk import SimDisk


class Runner:
    """A unit that is only named here."""

    def run(self) -> None:
        """Nothing."""


def env_of() -> ReplicaContext:
    """What does not matter here is not there."""
    return ReplicaContext(
        me="a",
        server_name="a",
        cluster="c",
        incarnation=1,
        boot=1,
        disk=SimDisk(random.Random(1)),
        traffic=cast(AccountTraffic, None),
        groups=cast(Groups, None),
        jitter=lambda n: 0,
        quota=cast(Quota, None),
    )


def turn(env: ReplicaContext, others: bool = False) -> list[str]:
    """Who runs in a turn."""
    env.go_on(others)
    dirty, env.dirty = env.dirty, {}
    return list(dirty)


def test_who_is_to_go_on_in_the_next_turn_does_not_run_again_in_this_one() -> None:
    env, unit = env_of(), Runner()
    env.wake_again("C", unit)
    env.wake("C", unit)
    assert not env.dirty
    assert turn(env) == ["C"] and not env.later
    env.wake("C", unit)
    assert turn(env) == ["C"]


def test_what_others_wait_for_goes_first_in_every_second_turn() -> None:
    env, long, short = env_of(), Runner(), Runner()
    ran = []
    for _ in range(4):
        env.wake_again("long", long)
        env.wake("short", short)
        ran.append(turn(env))
    assert ran == [["short"], ["short", "long"], ["short"], ["short", "long"]]


def test_the_disk_and_peers_count_as_others() -> None:
    env, unit = env_of(), Runner()
    env.wake_again("C", unit)
    assert turn(env, others=True) == []
    assert turn(env, others=True) == ["C"]
    assert turn(env, others=True) == []


def test_a_turns_messages_are_shared() -> None:
    env = env_of()
    env.now_ns = 10 * ALONE_AFTER_NS
    env.share(1)
    assert env.deliveries == TURN_MESSAGES_MAX
    env.share(4)
    assert env.deliveries == TURN_MESSAGES_MAX // 4
    env.share(10_000)
    assert env.deliveries == DELIVERIES_MIN


def test_turns_are_short_while_others_have_work() -> None:
    env, long, short = env_of(), Runner(), Runner()
    env.now_ns = 10 * ALONE_AFTER_NS
    env.wake_again("long", long)
    env.wake("short", short)
    turn(env)
    env.share(1)
    assert env.deliveries == SHORT_TURN_MESSAGES_MAX
    env.now_ns += ALONE_AFTER_NS + 1
    turn(env)
    env.share(1)
    assert env.deliveries == TURN_MESSAGES_MAX
