"""The command lines that dialogs and the palette show can be run as they stand."""

import shlex

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig
from jsctl.api.words import Discard
from jsctl.cli import hoist, walk
from jsctl.commands.toolkit.grammar.parser import parse
from jsctl.commands.toolkit.grammar.spec import Command
from jsctl.dashboard.actions.catalog import ACTIONS, Action, Target, show_command
from jsctl.dashboard.actions.edits import edit_command
from jsctl.dashboard.model.snapshot import Consumer, Stream
from tests.dashboard.sample import sample
from tests.dashboard.shots import showing

NOW = sample()
PINNED = Consumer("APP", "S", "C", pinned=(("A", "client"),), leader="n1", peers=())
ODD = Stream("APP", "odd name; rm -rf $HOME 'x'", peers=NOW.streams[1].peers, leader="n1")
TARGETS: tuple[Target, ...] = (
    NOW.streams[1],
    ODD,
    NOW.consumers[4],
    NOW.consumers[6],
    PINNED,
    NOW.servers[1],
    NOW.meta,
)
PAIRS = [(action, target) for action in ACTIONS for target in TARGETS if action.fits(target, NOW)]


def check(line: str) -> None:
    """AssertionError or UsageError if our own command line does not understand it."""
    words = shlex.split(line)
    assert words[0] == "jsctl"
    _, words = hoist(words[1:])
    found = walk(words)
    assert isinstance(found.node, Command), line
    parse(found.node, found.inherited, found.words)


@pytest.mark.parametrize(
    ("action", "target"), PAIRS, ids=[f"{action.name}-{at}" for at, (action, _) in enumerate(PAIRS)]
)
def test_of_actions(action: Action, target: Target) -> None:
    check(action.command(target))
    if action.plan is None:
        return
    plan = action.plan(target, NOW)
    for choice in plan.choices or ("",):
        check(plan.command(choice))
        assert plan.effects(choice)


def test_every_action_was_looked_at() -> None:
    assert {action.name for action, _ in PAIRS} == {action.name for action in ACTIONS}


@pytest.mark.parametrize("target", TARGETS, ids=range(len(TARGETS)))
def test_of_copies(target: Target) -> None:
    check(show_command(target))


async def test_of_the_palette() -> None:
    async with showing() as driven:
        for entry in driven.app.get_system_commands(driven.app.screen):
            if entry.help.startswith("jsctl "):
                check(entry.help)


@pytest.mark.parametrize(
    ("change", "flags"),
    [
        ({"max_age": 30 * 86400 * 10**9}, "--max-age 720h0m0s"),
        ({"max_bytes": 1024}, "--max-bytes 1024"),
        ({"discard": Discard.NEW}, "--discard new"),
        ({"subjects": ("a.>", "b")}, "--subjects 'a.>,b'"),
        ({"no_ack": True}, "--no-ack"),
        ({"num_replicas": 3, "description": "new one"}, "--description 'new one' --replicas 3"),
        ({"max_msgs": 7, "first_seq": 9}, "--config config.json"),
    ],
)
def test_of_edits(change: dict[str, object], flags: str) -> None:
    stream = Stream("APP", "S")
    after = StreamConfig(name="S", **change)  # type: ignore[arg-type] # by name
    line = edit_command(stream, StreamConfig(name="S"), after)
    assert line == f"jsctl stream edit S {flags} -f"
    if "--config" not in line:
        check(line)


def test_of_edits_that_flags_cannot_say() -> None:
    stream, consumer = Stream("APP", "S"), Consumer("APP", "S", "C")
    after = StreamConfig(name="S", metadata={})
    from jsctl.api.stream import Republish

    moved = StreamConfig(name="S", republish=Republish(src="a", dest="b"))
    assert edit_command(stream, after, moved) == "jsctl stream edit S --config config.json -f"
    line = edit_command(consumer, ConsumerConfig(), ConsumerConfig(max_deliver=4))
    assert line == "jsctl consumer edit S C --max-deliver 4 -f"
    check(line)
