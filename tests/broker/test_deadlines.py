"""Deadlines against a dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.deadlines import Deadlines, earliest

steps = st.lists(
    st.tuples(st.sampled_from(["set", "cancel", "due"]), st.integers(0, 5), st.integers(0, 20)),
    max_size=60,
)


@given(steps)
def test_behaves_like_a_dictionary(script: list[tuple[str, int, int]]) -> None:
    made: Deadlines[int] = Deadlines()
    model: dict[int, int] = {}
    for name, key, time in script:
        if name == "set":
            made.set(key, time)
            model[key] = time
        elif name == "cancel":
            assert made.cancel(key) == (model.pop(key, None) is not None)
        else:
            want = {k for k, due in model.items() if due <= time}
            found = made.due(time)
            assert set(found) == want and len(found) == len(want)
            assert [model[k] for k in found] == sorted(model[k] for k in found)
            for k in want:
                del model[k]
        assert made.next() == min(model.values(), default=None)
        assert len(made) == len(model)
        assert all(made.get(k) == model.get(k) and (k in made) == (k in model) for k in range(6))


def test_equal_times_come_in_the_order_of_setting() -> None:
    made: Deadlines[str] = Deadlines()
    for key in ("z", "a", "m"):
        made.set(key, 5)
    assert made.due(5, limit=2) == ["z", "a"]
    assert made.due(5) == ["m"]


def test_moving_a_deadline_often_does_not_pile_up() -> None:
    made: Deadlines[str] = Deadlines()
    for time in range(10_000):
        made.set("heartbeat", time)
    assert made.next() == 9_999
    assert made.due(10_000) == ["heartbeat"]
    made.set("again", 1)
    made.clear()
    assert made.next() is None


@given(st.lists(st.none() | st.integers(0, 5), min_size=1))
def test_the_earliest_of_some_times(times: list[int | None]) -> None:
    assert earliest(*times) == min([at for at in times if at is not None], default=None)
