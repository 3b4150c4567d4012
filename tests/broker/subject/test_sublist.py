"""The sublist against a list that is searched pattern by pattern."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.subject.matching import matches
from jsctl.broker.subject.sublist import CACHE_ENTRIES_MAX, Sublist
from tests.support.quick import examples

Answer = tuple[tuple["Sub", ...], tuple[tuple["Sub", ...], ...]]


@dataclass(eq=False, slots=True)
class Sub:
    pattern: bytes
    queue: bytes = b""


def build(plain: tuple[Sub, ...], groups: tuple[tuple[Sub, ...], ...]) -> Answer:
    return plain, groups


def make() -> Sublist[Sub, Answer]:
    return Sublist(build)


tokens = st.sampled_from([b"a", b"b", b"*"])
patterns = st.builds(
    lambda head, tail: b".".join([*head, tail]),
    st.lists(tokens, max_size=3),
    st.sampled_from([b"a", b"b", b"*", b">"]),
)
subjects = st.lists(st.sampled_from([b"a", b"b", b"c", b"*"]), min_size=1, max_size=4).map(
    b".".join
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), patterns, st.sampled_from([b"", b"", b"q1", b"q2"])),
        st.tuples(st.just("drop"), st.integers(0, 50), st.just(b"")),
        st.tuples(st.just("ask"), subjects, st.just(b"")),
    ),
    max_size=40,
)


def check(sublist: Sublist[Sub, Answer], model: list[Sub], subject: bytes) -> None:
    plain, groups = sublist.match(subject)
    found = [sub for sub in model if matches(subject, sub.pattern)]
    assert {id(s) for s in plain} == {id(s) for s in found if not s.queue}
    by_queue = {group[0].queue: {id(s) for s in group} for group in groups}
    assert len(by_queue) == len(groups)
    for queue in (b"q1", b"q2"):
        assert by_queue.get(queue, set()) == {id(s) for s in found if s.queue == queue}
    assert sublist.match_many([subject]) == [(plain, groups)]


@given(steps)
@settings(max_examples=examples(120), deadline=None)
def test_agrees_with_naive_search(todo: list[tuple[str, bytes | int, bytes]]) -> None:
    sublist = make()
    model: list[Sub] = []
    for name, what, queue in todo:
        if name == "add":
            assert isinstance(what, bytes)
            model.append(Sub(what, queue))
            sublist.insert(what, model[-1])
        elif name == "drop" and model:
            assert isinstance(what, int)
            gone = model.pop(what % len(model))
            sublist.remove(gone.pattern, gone)
        elif name == "ask":
            assert isinstance(what, bytes)
            check(sublist, model, what)
    assert len(sublist) == len(model)
    assert {id(sub) for sub in sublist} == {id(sub) for sub in model}
    check(sublist, model, b"a.b")


def test_changes_move_the_generation_and_spare_other_answers() -> None:
    sublist = make()
    one = Sub(b"a.b")
    answer = sublist.match(b"c.d")
    sublist.insert(b"a.b", one)
    sublist.insert(b"a.b", one)
    assert sublist.generation == 1 and len(sublist) == 1
    assert sublist.match(b"c.d") is answer
    sublist.insert(b"c.*", Sub(b"c.*"))
    assert sublist.match(b"c.d") is not answer
    sublist.remove(b"x.y", one)
    sublist.remove(b"a.b", Sub(b"a.b"))
    assert len(sublist) == 2
    before = sublist.generation
    sublist.touch(b"a.b")
    assert sublist.generation == before + 1


def test_cache_is_bounded_and_large_ones_are_cleared() -> None:
    sublist = make()
    for number in range(CACHE_ENTRIES_MAX + 10):
        sublist.match(b"s%d" % number)
    assert 0 < sublist.cache_count <= CACHE_ENTRIES_MAX
    sublist.insert(b"z.>", Sub(b"z.>"))
    assert sublist.cache_count == 0


def test_empty_tokens_match_nothing() -> None:
    sublist = make()
    sublist.insert(b"foo.>", Sub(b"foo.>"))
    assert sublist.match(b"foo..bar") == ((), ())
    assert len(sublist.match(b"foo.>")[0]) == 1


def test_a_pattern_is_there_as_it_was_given() -> None:
    made = make()
    plain, queued = Sub(b"a"), Sub(b"c", b"q")
    made.insert(b"a.b", plain)
    made.insert(b"a.*", plain)
    made.insert(b"c", queued)
    found = [made.has(one) for one in (b"a.b", b"a.*", b"a.c", b"a", b"a.b.c", b"c", b"")]
    assert found == [True, True, False, False, False, False, False]
    made.remove(b"a.b", plain)
    assert not made.has(b"a.b")


@settings(max_examples=examples(200))
@given(st.lists(patterns, max_size=4), subjects)
def test_who_may_listen_below_some_tokens_is_known(known: list[bytes], subject: bytes) -> None:
    sublist = make()
    for pattern in known:
        sublist.insert(pattern, Sub(pattern))
    tokens = subject.split(b".")
    for count in range(len(tokens)):
        if sublist.match(subject)[0]:
            assert sublist.may_match_below(tokens[:count])
        literal = b".".join(tokens[:count]) + b"." if count else b""
        if not any(b"*" in one or b">" in one for one in known) and literal:
            assert sublist.may_match_below(tokens[:count]) == any(
                f"{one.decode()}.".startswith(literal.decode()) for one in known
            )


def test_an_answer_for_one_subscription_stays_when_others_come_and_goes_with_it() -> None:
    sublist = make()
    first, again = Sub(b"a.b"), Sub(b"a.b")
    sublist.insert(b"a.b", first)
    answer = sublist.match(b"a.b")
    sublist.insert(b"*.c", Sub(b"*.c"))
    assert sublist.match(b"a.b") is answer
    sublist.insert(b"a.b", again)
    assert sublist.match(b"a.b") == ((first, again), ())
    sublist.remove(b"a.b", first)
    assert sublist.match(b"a.b") == ((again,), ())
