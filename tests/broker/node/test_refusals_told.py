"""Lines of the log about what clients are refused: so many a second, and how many there were."""

import pytest

from jsctl.broker.sessions.refusal_log import LINES_MAX, SHOWN_BYTES_MAX, WINDOW_NS
from jsctl.broker.turn import LogLevel, TurnInputs
from tests.support.node_play import NodePlay, PlayClient

DENIED = b"PUB $NRG.%d 0\r\n\r\n"


def told(play: NodePlay, client: PlayClient, data: bytes) -> list[str]:
    """The lines that some input has logged."""
    outputs = play.node.turn(TurnInputs(chunks=[(client.conn, data)]), play.now_ns)
    assert all(line.level is LogLevel.ERROR for line in outputs.logs)
    return [line.text for line in outputs.logs]


def test_a_flood_of_refusals_is_told_in_few_lines() -> None:
    play = NodePlay()
    client = play.connect("a")
    lines = told(play, client, b"".join(DENIED % number for number in range(1_000)))
    assert len(lines) == LINES_MAX
    assert lines[0].endswith('"A/user:a" - Publish Violation - Subject "$NRG.0"')
    assert not told(play, client, DENIED % 1)
    play.now_ns += WINDOW_NS
    more, line = told(play, client, DENIED % 2)
    assert more.startswith(f"{1_001 - LINES_MAX} more refusals")
    assert line.endswith('Subject "$NRG.2"')


def test_how_many_more_there_were_is_told_when_nobody_is_refused_any_more() -> None:
    play = NodePlay()
    client = play.connect("a")
    began_ns = play.now_ns
    for _ in range(2):
        told(play, client, b"".join(DENIED % number for number in range(100)))
    play.turn(closed=[(client.conn, "gone")])
    play.now_ns = began_ns + WINDOW_NS - 1
    outputs = play.node.turn(TurnInputs(), play.now_ns)
    assert not outputs.logs
    due_ns = play.node.settle(play.now_ns)
    assert due_ns is not None and due_ns <= began_ns + WINDOW_NS
    play.now_ns += 1
    (line,) = play.node.turn(TurnInputs(), play.now_ns).logs
    assert line.text.startswith(f"{200 - LINES_MAX} more refusals")
    for _ in range(3):
        play.now_ns += WINDOW_NS
        assert not play.node.turn(TurnInputs(), play.now_ns).logs


@pytest.mark.parametrize("count", [SHOWN_BYTES_MAX, SHOWN_BYTES_MAX + 1])
def test_long_subjects_are_cut(count: int) -> None:
    play = NodePlay()
    client = play.connect("a")
    subject = b"$NRG.".ljust(count, b"x")
    (line,) = told(play, client, b"PUB %s 0\r\n\r\n" % subject)
    shown = subject[:SHOWN_BYTES_MAX].decode() + "..." * (count > SHOWN_BYTES_MAX)
    assert line.endswith(f'Subject "{shown}"')


def test_a_reply_that_nobody_may_use_is_told_as_such() -> None:
    play = NodePlay()
    (line,) = told(play, play.connect("a"), b"PUB x $JS.ACK.S.C 0\r\n\r\n")
    assert line.endswith('Publish Violation - Reply "$JS.ACK.S.C"')
