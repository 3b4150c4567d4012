"""A consumer judged: how far it is behind, and whether it is at work."""

from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.times import SECOND_NS, format_duration, parse_time
from jsctl.api.words import PriorityPolicy
from jsctl.commands.toolkit.health.thresholds import Thresholds
from jsctl.render.humanize import go_moment
from jsctl.render.reports.server.check import CheckResult


def judge_consumer(
    info: ConsumerInfo, limits: Thresholds, result: CheckResult, now_ns: int
) -> None:
    """All rules, in the order in which `nats` tells them."""
    counts = (
        (
            "ack_pending",
            "outstanding-ack-critical",
            info.num_ack_pending,
            "The number of messages waiting to be Acknowledged",
            "Ack Pending",
        ),
        (
            "pull_waiting",
            "waiting-critical",
            info.num_waiting,
            "The number of waiting Pull requests",
            "Waiting Pulls",
        ),
        (
            "pending",
            "unprocessed-critical",
            info.num_pending,
            "The number of messages that have not yet been consumed",
            "Unprocessed Messages",
        ),
        (
            "redelivered",
            "redelivery-critical",
            info.num_redelivered,
            "The number of messages currently being redelivered",
            "Redelivered",
        ),
    )
    for key, flag, value, text, _ in counts:
        result.measure(key, value, critical=limits.given_count(flag), help=text)
    _measure_ages(info, limits, result, now_ns)
    for _, flag, value, _, words in counts:
        if limit := limits.count(flag):
            sentence = f"{words}: {value}"
            if value >= limit:
                result.critical(sentence)
            else:
                result.ok(sentence)
    _age(result, limits, "last-delivery-critical", info.delivered.last_active, now_ns)
    _age(result, limits, "last-ack-critical", info.ack_floor.last_active, now_ns)
    _pinned(info, limits, result)


def _measure_ages(info: ConsumerInfo, limits: Thresholds, result: CheckResult, now_ns: int) -> None:
    ages = (
        ("last_delivery", info.delivered.last_active, "delivered"),
        ("last_ack", info.ack_floor.last_active, "acknowledged"),
    )
    for key, moment, what in ages:
        if moment:
            result.measure(
                key,
                (now_ns - parse_time(moment)) / SECOND_NS,
                critical=limits.given_seconds(key.replace("_", "-") + "-critical"),
                unit="s",
                help=f"Seconds since the last message was {what}",
            )


def _age(result: CheckResult, limits: Thresholds, flag: str, moment: str, now_ns: int) -> None:
    limit = limits.seconds(flag)
    if not limit:
        return
    word, none = ("ack", "acks") if "ack" in flag else ("delivery", "deliveries")
    age_ns = now_ns - parse_time(moment) if moment else 0
    if not moment:
        result.critical(f"No {none}")
    elif age_ns >= limit * SECOND_NS:
        result.critical(f"Last {word} {format_duration(age_ns)} ago")
    else:
        result.ok(f"Last {word} {go_moment(moment)}")


def _pinned(info: ConsumerInfo, limits: Thresholds, result: CheckResult) -> None:
    config = info.config or ConsumerConfig()
    pinned = sum(bool(group.pinned_client_id) for group in info.priority_groups)
    by_client = config.priority_policy is PriorityPolicy.PINNED_CLIENT
    groups = len(config.priority_groups)
    if by_client:
        text = "The number of consumers groups with pinned clients"
        result.measure("pinned_groups", pinned, help=text)
        result.measure("groups", groups, help="The total number of consumers groups")
    if not limits.flag("pinned"):
        return
    if not by_client or not groups or not info.priority_groups:
        result.critical("Not pinned client priority mode")
    elif pinned != groups:
        result.critical(f"{pinned} / {groups} pinned clients")
    else:
        result.ok(f"{pinned} pinned clients")
