"""Copies of a consumer's state: leaders work on one that runs ahead of the log."""

from jsctl.broker.jetstream.consumers.chosen import Chosen
from jsctl.broker.jetstream.consumers.state import ConsumerState, Death


def test_a_copy_has_everything_but_what_is_told_and_is_its_own() -> None:
    state = ConsumerState(acks_needed=True, acks_watched=True)
    empty = state.copy()
    for number, name in enumerate(ConsumerState.__slots__, 1):
        value = getattr(state, name)
        if isinstance(value, bool):
            setattr(state, name, True)
        elif isinstance(value, int):
            setattr(state, name, number)
    state.pending[1] = 2, 3
    state.redelivered[1] = 4
    state.dead[5] = Death(6, 1, False)
    state.delayed[1] = None
    state.acked.append(7)
    state.last_seqs = Chosen([8, 9])
    copy = state.copy()
    assert copy.facts() == state.facts() != empty.facts()
    for name in set(ConsumerState.__slots__) - {"acked", "acks_watched", "coming", "last_seqs"}:
        assert getattr(copy, name) == getattr(state, name), name
        assert getattr(copy, name) != getattr(empty, name) or name == "acks_needed", name
    assert (copy.acked, copy.acks_watched) == ([], False)
    copy.last_seqs.drop(8)
    copy.pending.clear()
    assert (list(state.last_seqs), state.pending) == ([8, 9], {1: (2, 3)})
