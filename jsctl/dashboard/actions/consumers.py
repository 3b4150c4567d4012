"""Pausing, resuming and unpinning consumers."""

from time import localtime, strftime, time_ns

from jsctl.api.times import SECOND_NS, format_time, parse_duration
from jsctl.dashboard.actions.plans import Effect, Plan, Target, Tier, words
from jsctl.dashboard.connection.link import Link
from jsctl.dashboard.model.snapshot import Consumer, Level, Snapshot
from jsctl.render.humanize import duration, number

PAUSES = ("1m", "5m", "15m", "1h", "8h")


def _consumer(target: Target) -> Consumer:
    assert isinstance(target, Consumer)
    return target


def plan_pause(target: Target, snapshot: Snapshot) -> Plan:
    """Stop deliveries for a while; of a paused consumer, go on."""
    consumer = _consumer(target)
    return _plan_resume(consumer) if consumer.paused else _plan_stop(consumer, snapshot.taken_ns)


def _check(choice: str) -> str:
    try:
        return "" if parse_duration(choice) > 0 else "must be longer than nothing"
    except ValueError as error:
        return str(error)


def _plan_stop(consumer: Consumer, now_ns: int) -> Plan:
    def effects(choice: str) -> tuple[Effect, ...]:
        if _check(choice):
            return ()
        length_ns = parse_duration(choice)
        resumes = strftime("%H:%M:%S", localtime((now_ns + length_ns) // SECOND_NS))
        growth = max(0.0, consumer.rate + consumer.lag_rate)
        later = round(consumer.lag + growth * length_ns / SECOND_NS)
        grown = f"growing about {growth:,.0f}/s, to {number(later)} by then"
        return (
            Effect("resumes", resumes),
            Effect("lag now", number(consumer.lag), grown if growth >= 1 else ""),
            Effect(
                "in flight",
                f"{number(consumer.ack_pending)} unacked",
                f"stay valid, ack wait {duration(consumer.ack_wait_ns)}",
            ),
        )

    async def run(link: Link, choice: str) -> str:
        until = format_time(time_ns() + parse_duration(choice))
        answer = await link.manager.pause_consumer(consumer.stream, consumer.name, until)
        left = answer.get("pause_remaining", 0)
        return f"paused for {duration(left) if isinstance(left, int) else choice}"

    return Plan(
        title="Pause consumer",
        tier=Tier.SUMMARY,
        headline=f"Stop delivering to {consumer.name} on {consumer.stream} for",
        button="Pause",
        run=run,
        command=lambda choice: words("consumer", "pause", consumer.stream, consumer.name, choice),
        effects=effects,
        choices=PAUSES,
        choice=1,
        free="other: a duration such as 30m or 2h",
        check=_check,
        mark="paused",
    )


def _plan_resume(consumer: Consumer) -> Plan:
    async def run(link: Link, _choice: str) -> str:
        await link.manager.pause_consumer(consumer.stream, consumer.name, "")
        return "resumed"

    effects = (
        Effect("lag now", number(consumer.lag), "is delivered from now on"),
        Effect("paused", f"for {duration(consumer.pause_left_ns)} more otherwise"),
    )
    return Plan(
        title="Resume consumer",
        tier=Tier.YES_NO,
        headline=f"Deliver to {consumer.name} on {consumer.stream} again",
        button="Resume",
        run=run,
        command=lambda _choice: words("consumer", "resume", consumer.stream, consumer.name, "-f"),
        effects=lambda _choice: effects,
        mark="ok",
    )


def pause_command(target: Target) -> str:
    """The command line of it."""
    consumer = _consumer(target)
    if consumer.paused:
        return words("consumer", "resume", consumer.stream, consumer.name)
    return words("consumer", "pause", consumer.stream, consumer.name, PAUSES[1])


def plan_unpin(target: Target, _snapshot: Snapshot) -> Plan:
    """Free the client that a priority group is pinned to."""
    consumer = _consumer(target)
    pinned = {group: client for group, client in consumer.pinned if client}

    async def run(link: Link, choice: str) -> str:
        await link.manager.unpin_consumer(consumer.stream, consumer.name, choice)
        return f"unpinned {pinned.get(choice, '')} from {choice}"

    def effects(choice: str) -> tuple[Effect, ...]:
        return (
            Effect("pinned now", pinned.get(choice, "nobody")),
            Effect("then", "the next client that pulls", "gets everything", Level.OK),
        )

    return Plan(
        title="Unpin client",
        tier=Tier.YES_NO,
        headline=f"Let another client of a group of {consumer.name} take over",
        button="Unpin",
        run=run,
        command=lambda choice: unpin_command(consumer, choice),
        effects=effects,
        choices=tuple(pinned),
    )


def unpin_command(target: Target, group: str = "") -> str:
    """The command line of it."""
    consumer = _consumer(target)
    first = next((group for group, client in consumer.pinned if client), "")
    return words("consumer", "unpin", consumer.stream, consumer.name, group or first, "-f")
