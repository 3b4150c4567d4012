"""The meta state is worded over many turns while streams come and go, and servers fail."""

import pytest

from jsctl.broker.jetstream.meta import wording
from jsctl.broker.replication.drafts import Draft
from tests.simulation.plan import draw_changes, draw_turmoil
from tests.simulation.run import failure


def test_states_that_take_many_turns_are_those_of_one_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wording, "WORDED_AT_ONCE", 1)
    turns = 0
    go_on = Draft.go_on

    def counted(self: Draft) -> bool:
        nonlocal turns
        ended = go_on(self)
        turns += not ended
        return ended

    monkeypatch.setattr(Draft, "go_on", counted)
    for plan in (draw_changes(3), draw_changes(4, 5), draw_turmoil(5)):
        assert not failure(plan)
    assert turns > 50
