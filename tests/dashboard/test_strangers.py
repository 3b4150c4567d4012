"""Foreign names of every kind, many things at once, and sizes that change."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jsctl.dashboard.model.snapshot import Alert, Event, Level, Snapshot
from jsctl.dashboard.once import document_of, text_of
from tests.dashboard.sample import sample
from tests.dashboard.shots import open_stream, showing
from tests.support.quick import examples

pytestmark = pytest.mark.slow

NAMES = (
    "[bold red]markup[/]",
    "[/unbalanced",
    "\\[escaped]",
    "esc\x1b[2J\x1b]0;title\x07",
    "tab\tnew\nline\rreturn",
    "日本語のストリーム",
    "שלום\u202eevil\u202c",
    "e\u0301\u0302\u0303",
    "👩\u200d👩\u200d👧",
    "x" * 200,
    "\x9b31m",
    "",
)


def dressed(*names: str) -> Snapshot:
    """The sample, with strangers' names on everything, a different one on each kind of thing."""
    now = sample()
    one, two, three, four = (names[at % len(names)] for at in range(4))
    server = replace(now.servers[0], name=one or "?", why=two, version=three)
    stream = replace(now.streams[0], name=two or "?", subjects=(three,), why=four, group=one)
    peers = (replace(stream.peers[0], name=four), *stream.peers[1:])
    consumer = replace(now.consumers[0], stream=two or "?", name=three or "?", filters=(four,))
    group = replace(now.groups[0], name=four or "?", asset=one, leader=two)
    event = Event(now.taken_ns, Level.WARN, one or "?", two, three, serial=2000)
    return replace(
        now,
        context=one,
        note=two,
        servers=(server, *now.servers[1:]),
        streams=(replace(stream, peers=peers), *now.streams[1:]),
        consumers=(consumer, *now.consumers[1:]),
        groups=(group, *now.groups[1:]),
        meta=replace(now.meta, leader=three),
        alerts=(Alert(Level.BAD, three, four), *now.alerts),
        events=(*now.events, event),
    )


def is_safe(text: str) -> bool:
    """Whether a terminal obeys nothing in it."""
    return not [one for one in text if one != "\n" and (ord(one) < 32 or 127 <= ord(one) < 160)]


WAYS: tuple[tuple[str, ...], ...] = (
    ("2",),
    ("3", "enter"),
    ("escape", "4", "enter"),
    ("escape", "5", "enter"),
    ("escape", "8"),
    ("m",),
    ("escape", "2", "enter"),
    ("escape", "x"),
    ("escape", "p"),
    ("escape", "colon"),
)


@pytest.mark.parametrize("turn", range(3))
async def test_foreign_names_everywhere(turn: int) -> None:
    for_this = NAMES[turn::3]
    async with showing(dressed(*for_this)) as driven:
        assert is_safe(text_of(driven.app))
        for keys in WAYS:
            await driven.press(*keys)
            shown = text_of(driven.app)
            assert is_safe(shown), keys
        document_of(driven.now)


@given(name=st.text(max_size=30))
@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_name(name: str) -> None:
    async with showing(dressed(name)) as driven:
        await driven.press("2", "enter")
        assert is_safe(text_of(driven.app))


def crowd(streams: int, consumers: int) -> Snapshot:
    """Many of everything."""
    now = sample()
    return replace(
        now,
        streams=tuple(
            replace(now.streams[at % 14], name=f"STREAM-{at:05}") for at in range(streams)
        ),
        consumers=tuple(
            replace(now.consumers[at % 15], name=f"worker-{at:05}") for at in range(consumers)
        ),
    )


async def test_a_thousand_streams_and_five_thousand_consumers() -> None:
    many = crowd(1000, 5000)
    async with showing(many) as driven:
        assert "Streams 1000" in text_of(driven.app)
        await driven.press("3", "G")
        assert "worker-04999" in text_of(driven.app)
        for round_ in range(3):
            moved = tuple(replace(one, lag=one.lag + round_) for one in many.consumers)
            driven.app.show(replace(many, consumers=moved[::-1]))
            await driven.pilot.pause()
        await driven.press("slash", *"-0420")
        assert "Consumers 10/5000" in text_of(driven.app)


async def test_a_storm_of_sizes() -> None:
    sizes = [(40, 10), (250, 80), (20, 5), (99, 17), (101, 33)]
    async with showing() as driven:
        for keys in ((), ("4", "enter"), ("escape",)):
            await driven.press(*keys)
            for at, size in enumerate(sizes):
                driven.app.show(replace(driven.now, rtt_ns=at))
                await driven.pilot.resize_terminal(*size)
            assert is_safe(text_of(driven.app))
        await open_stream(driven)
        for size in sizes:
            await driven.pilot.resize_terminal(*size)
        assert "ORDERS" in text_of(driven.app)
