"""Configurations of consumers."""

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.fields import ZERO_TIME
from jsctl.api.words import AckPolicy, DeliverPolicy, PriorityPolicy
from jsctl.commands.consumer.change import parse_until
from jsctl.commands.consumer.config import linear_backoff, required_level, starting
from jsctl.commands.toolkit.assets.config_flags import differences
from jsctl.errors import UsageError


def test_newer_features_name_the_level_they_need() -> None:
    pinned = ConsumerConfig(priority_policy=PriorityPolicy.PINNED_CLIENT)
    assert required_level(pinned) == 2
    assert required_level(ConsumerConfig(pause_until="x")) == 1
    assert required_level(ConsumerConfig(ack_policy=AckPolicy.FLOW_CONTROL)) == 4


@pytest.mark.parametrize(
    ("text", "policy", "start"),
    [
        ("all", DeliverPolicy.ALL, 0),
        ("new", DeliverPolicy.NEW, 0),
        ("subject", DeliverPolicy.LAST_PER_SUBJECT, 0),
        ("100", DeliverPolicy.BY_START_SEQUENCE, 100),
        ("1h", DeliverPolicy.BY_START_TIME, 0),
    ],
)
def test_start_policies(text: str, policy: DeliverPolicy, start: int) -> None:
    config = starting(ConsumerConfig(), text)
    assert (config.deliver_policy, config.opt_start_seq) == (policy, start)
    assert bool(config.opt_start_time) is (policy is DeliverPolicy.BY_START_TIME)


def test_backoffs_and_times() -> None:
    ms = 1_000_000
    assert linear_backoff(2, 1000 * ms, 2000 * ms) == (1000 * ms, 1500 * ms)
    assert linear_backoff(3, 20 * ms, 10 * ms) == (10 * ms, 13 * ms, 17 * ms)
    assert linear_backoff(2, 10 * ms, 10 * ms) == (10 * ms, 10 * ms)
    assert linear_backoff(1, 10, 30) == (10,)
    assert parse_until("2030-01-02T03:04:05Z") == "2030-01-02T03:04:05Z"
    assert parse_until("2030-01-02 03:04:05") == "2030-01-02T03:04:05Z"
    for wrong in (
        lambda: linear_backoff(0, 1, 2),
        lambda: linear_backoff(1, 0, 2),
        lambda: linear_backoff(1, 1, 0),
        lambda: linear_backoff(3, 1, 2),
        lambda: parse_until("soon"),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError):
        starting(ConsumerConfig(), "soon")


def test_no_pause_is_none_however_it_is_written() -> None:
    """Clients in Go write the year 1."""
    paused = ConsumerConfig(pause_until="2030-01-01T00:00:00Z")
    assert differences(ConsumerConfig(pause_until=ZERO_TIME), ConsumerConfig()) == []
    assert differences(paused, ConsumerConfig()) == ['- pause_until: "2030-01-01T00:00:00Z"']
