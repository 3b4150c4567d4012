"""The two twins of the lane's loop: one contract, and on the same input the same answer."""

import gc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.accel import contract, pure
from jsctl.broker.accel.choice import PURE_VARIABLE, Twin, chosen, compiled, interpreted
from jsctl.broker.accel.contract import HEADERS, HEARS, Leg
from jsctl.broker.accel.repeats import Shape, row_expression
from tests.support.lane_tables import FLAGS, PLENTY, TWINS, World, agree, leg
from tests.support.quick import examples


@pytest.fixture(params=TWINS, ids=lambda twin: twin.name)
def twin(request: pytest.FixtureRequest) -> Twin:
    found = request.param
    assert isinstance(found, Twin)
    return found


# What both do


def test_the_compiled_one_is_built_here() -> None:
    assert compiled() is not None, "build it: pip install -e . with a C compiler"


def test_the_environment_has_the_pure_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PURE_VARIABLE, "1")
    assert chosen().name == "pure"
    for off in ("", "0"):
        monkeypatch.setenv(PURE_VARIABLE, off)
        assert chosen() is compiled()


def test_messages_are_written_and_counted(twin: Twin) -> None:
    world = World(twin)
    data = b"PUB o.1 5\r\nhello\r\nPUB o.2 _I.1 2\r\nhi\r\n"
    data += b"HPUB h.1 _I.2 12 14\r\nNATS/1.0\r\n\r\nyo\r\n"
    position, count, size, cost, lot, outputs = world.route(data)
    assert (position, count, size, lot) == (len(data), 3, 5 + 2 + 14, 7)
    assert outputs == (
        [
            ("a", b"MSG o.1 1 5\r\nhello\r\nMSG o.2 1 _I.1 2\r\nhi\r\n", 2, 7),
            ("b", b"MSG h.1 2 _I.2 2\r\nyo\r\n", 1, 2),
        ],
        [],
        [(("a",), 2), (("b",), 1)],
    )
    assert world.asked == [b"o.1", b"o.2", b"h.1"]
    assert cost == 3 * (contract.MISS_COST + contract.MESSAGE_COST + 1)


def test_each_subject_is_asked_for_once(twin: Twin) -> None:
    world = World(twin)
    for _ in range(3):
        world.route(b"PUB o.1 0\r\n\r\nPUB x 0\r\n\r\n")
    assert world.asked == [b"o.1", b"x"]
    world.table.clear()
    world.fill()
    world.route(b"PUB o.1 0\r\n\r\n")
    assert world.asked == [b"o.1", b"x", b"o.1"]


def published(subjects: list[bytes]) -> bytes:
    return b"".join(b"PUB %s 1\r\nx\r\n" % subject for subject in subjects)


def test_a_family_is_asked_for_once(twin: Twin) -> None:
    """Subjects that begin the same and have as many tokens; each is told by its own name."""
    world = World(twin)
    subjects = [b"ss.%d" % number for number in range(3000)]
    _, count, _, cost, _, outputs = world.route(published(subjects))
    assert (world.asked, count) == ([b"ss.0"], 3000)
    assert cost == contract.MISS_COST + 3000 * (contract.MESSAGE_COST + 2 * contract.SINK_COST)
    rows = [(subject, b"", b"", b"x", "a") for subject in subjects]
    assert outputs == ([], [("f", rows), ("g", rows)], [])
    world.route(published([b"oo.1.2", b"oo.3.4", b"oo.5", b"ooo.1.2", b"ooo.1.3", b"ooo.2.3"]))
    assert world.asked[1:] == [b"oo.1.2", b"oo.5", b"ooo.1.2", b"ooo.2.3"]
    world.table.clear()
    world.fill()
    world.route(published([b"ss.1"]))
    assert world.asked[-1] == b"ss.1"


def test_a_family_fills_no_table(twin: Twin) -> None:
    world = World(twin)
    for start in range(0, 2 * contract.SUBJECTS_MAX, 4096):
        subjects = [b"nn.%d" % number for number in range(start, start + 4096)]
        assert world.route(published(subjects))[1] == 4096
    assert (world.asked, world.table.full) == ([b"nn.0"], False)


def test_what_is_of_no_family(twin: Twin) -> None:
    """Empty tokens, and what is not for the loop at all, whatever it begins with."""
    world = World(twin)
    odd = [b"oo..1", b"oo.1.", b"oo.", b"oo", b"oo.*", b"oo.>", b"oo.x>"]
    deep = b"oo" + b".x" * (contract.DOTS_MAX + 1)
    world.route(published([b"oo.1.1", b"oo.1", *odd, deep + b"1", deep + b"2"]))
    assert world.asked == [b"oo.1.1", b"oo.1", *odd, deep + b"1", deep + b"2"]
    for wrong in (b"oo.\t", b"oo.\r", b"oo." + b"1" * contract.SUBJECT_BYTES_MAX):
        data = published([b"oo.2", wrong])
        assert world.route(data)[0] == data.index(b"PUB " + wrong)


def test_so_many_lengths_of_prefixes_are_looked_for(twin: Twin) -> None:
    """For one number of dots; others are asked for subject by subject."""
    world = World(twin)
    names = [b"o" * count + b".1.2.3.4.5.6." for count in range(2, 8)]
    world.route(published([name + b"%d" % n for n in (1, 2) for name in names]))
    others = names[contract.DEPTHS_MAX :]
    assert world.asked == [name + b"1" for name in names] + [name + b"2" for name in others]


def test_sinks_get_rows(twin: Twin) -> None:
    data = b"PUB s.1 r 1\r\nx\r\nHPUB s.2 12 13\r\nNATS/1.0\r\n\r\ny\r\n"
    rows = [(b"s.1", b"r", b"", b"x", "a"), (b"s.2", b"", b"NATS/1.0\r\n\r\n", b"y", "a")]
    assert World(twin).route(data)[5] == ([], [("f", rows), ("g", rows)], [])


@pytest.mark.parametrize(
    "data",
    [
        b"pub o 1\r\nx\r\n",
        b"PUB  o 1\r\nx\r\n",
        b"PUB o  1\r\nx\r\n",
        b"PUB o 1 \r\nx\r\n",
        b"PUB o 1\nx\r\n",
        b"PUB o\t1\r\nx\r\n",
        b"PUB o\r1 1\r\nx\r\n",
        b"PUB o r\t 1\r\nx\r\n",
        b"PUB o r\r 1\r\nx\r\n",
        b"PUB o r s 1\r\nx\r\n",
        b"PUB o 01\r\nx\r\n",
        b"PUB o 1_0\r\n0123456789\r\n",
        b"PUB o +1\r\nx\r\n",
        b"PUB o -1\r\nx\r\n",
        b"PUB o 1\r\nx\r",
        b"PUB o 1\r\nxy\r\n",
        b"PUB o 1\r\nx\n\n",
        b"PUB o 1234567890\r\nx\r\n",
        b"PUB o \r\nx\r\n",
        b"PUB o\r\n",
        b"PUB \r\n",
        b"PUB",
        b"PUB o",
        b"HPUB o 1\r\nx\r\n",
        b"HPUB o 2 1\r\nx\r\n",
        b"HPUB o 00 1\r\nx\r\n",
        b"HPUB o x 1\r\nx\r\n",
        b"PUB o _R_.1 1\r\nx\r\n",
        b"PUB o $JS.ACK.1 1\r\nx\r\n",
        b"PUB n reply 1\r\nx\r\n",
        b"PUB x 1\r\nx\r\n",
        b"HPUB o 29 30\r\nNATS/1.0\r\nNats-Trace-Dest: t\r\n\r\nx\r\n",
        b"PING\r\n",
        b"",
        b"PUB o%s 1\r\nx\r\n" % (b"o" * 512),
        b"PUB o %s 1\r\nx\r\n" % (b"r" * 1997),
        b"PUB o 65536\r\n%s\r\n" % bytes(65536),
    ],
)
def test_it_stops_in_front_of_everything_else(twin: Twin, data: bytes) -> None:
    world = World(twin)
    before = b"PUB o 1\r\nx\r\n"
    assert world.route(before + data + b"PING\r\n")[:3] == (len(before), 1, 1)
    again = world.route(data + b"PING\r\n")
    assert again[:3] == (0, 0, 0) and again[5] is None


def test_what_stops_it_without_a_flag(twin: Twin) -> None:
    world = World(twin)
    headers, own = b"HPUB s 2 3\r\nabc\r\n", b"PUB o 1\r\nx\r\n"
    assert world.route(headers, flags=HEARS)[1] == 0
    assert world.route(headers, flags=HEADERS)[1] == 1
    assert world.route(own, flags=HEADERS)[1] == 0, "who published it is among its targets"
    assert world.route(b"PUB n r 1\r\nx\r\n", flags=HEARS)[1] == 1, "it does not want to know"
    assert world.route(b"PUB q 1\r\nx\r\n", flags=0)[1] == 0


def test_a_place_in_the_header_block_alone_asks_for_a_trace(twin: Twin) -> None:
    data = b"HPUB s 2 16\r\nNNats-Trace-Dest\r\n"
    assert World(twin).route(data)[1] == 1


def test_lines_and_payloads_of_the_maximum_are_taken(twin: Twin) -> None:
    world = World(twin, payload_max=10, line_max=20)
    assert world.route(b"PUB o.%s 10\r\n0123456789\r\n" % (b"x" * 15))[1] == 1
    assert world.route(b"PUB o.%s 10\r\n0123456789\r\n" % (b"x" * 16))[1] == 0
    assert world.route(b"PUB o.1 11\r\n0123456789a\r\n")[1] == 0


def test_a_budget_ends_it_and_it_goes_on(twin: Twin) -> None:
    world, data = World(twin), b"PUB o 1\r\nx\r\n" * 40
    position, calls = 0, 0
    while position < len(data):
        found = world.route(data, position, budget=3 * (contract.MESSAGE_COST + 1))
        assert isinstance(found[0], int) and position < found[0]
        position, calls = found[0], calls + 1
    assert calls > 10


def test_members_of_groups_take_turns_as_drawn(twin: Twin) -> None:
    world, data = World(twin), b"PUB q 1\r\nx\r\n" * 300
    *_, lot, outputs = world.route(data)
    expected = 7
    counts = {"d": 0, "e": 0, "a": 0}
    for _ in range(300):
        expected = contract.next_lot(expected)
        counts["dea"[contract.drawn(expected, 3)]] += 1
    assert lot == expected
    assert isinstance(outputs, tuple)
    assert {name: count for name, _, count, _ in outputs[0]} == counts
    assert min(counts.values()) > 60


def test_a_full_table_learns_nothing_more(twin: Twin) -> None:
    world = World(twin)
    lines = [b"PUB o.%d 0\r\n\r\n" % number for number in range(contract.SUBJECTS_MAX + 1)]
    assert world.route(b"".join(lines))[1] == contract.SUBJECTS_MAX
    assert world.table.full
    assert world.route(lines[-1])[1] == 0
    assert world.route(lines[7])[1] == 1, "what is known goes on"
    world.table.clear()
    world.fill()
    assert world.route(lines[-1])[1] == 1


def test_many_legs_fill_it(twin: Twin) -> None:
    world = World(twin)
    legs = (leg(0, sid=b"1"),) * (contract.LEGS_MAX // 2)
    for _ in range(2):
        assert not world.table.full
        world.table.fan(legs, (), (), ())
    assert world.table.full


def test_output_is_bounded(twin: Twin) -> None:
    world = World(twin)
    legs = (leg(0, sid=b"s" * 1000),) * 20_000
    world.numbers[b"w"] = world.table.fan(legs, (), (), ())
    message = b"PUB w 1\r\nx\r\n"
    assert world.route(message * 5)[1] == 1, "20 MB each"
    wide = (leg(0, sid=b"s" * 2000),) * 20_000
    world.numbers[b"v"] = world.table.fan(wide, (), (), ())
    assert world.route(b"PUB v 1\r\nx\r\n")[1] == 0, "that alone is too much"


@pytest.mark.parametrize(
    "fan",
    [
        (((99, True, b"", b"", b""),), (), (), ()),
        (((-1, True, b"", b"", b""),), (), (), ()),
        ((), (), (7,), ()),
        ((), (), (), (((99, True, b"", b"", b"", ()),),)),
        ((), (), (), ((),)),
    ],
)
def test_fans_of_unknown_targets_are_refused(twin: Twin, fan: tuple[tuple[Leg, ...], ...]) -> None:
    world = World(twin)
    with pytest.raises(ValueError):
        world.table.fan(*fan)  # type: ignore[arg-type]
    assert world.route(b"PUB o 1\r\nx\r\n")[1] == 1


def test_an_error_of_whoever_is_asked_comes_out(twin: Twin) -> None:
    world = World(twin)
    world.numbers[b"w"] = 1 << 20
    for data, error in ((b"PUB w 0\r\n\r\n", ValueError),):
        with pytest.raises(error):
            world.route(b"PUB m 1\r\nx\r\n" + data)
    world.fill()
    _, count, *_, outputs = world.route(b"PUB m 1\r\ny\r\n")
    assert count == 1 and isinstance(outputs, tuple)
    assert [one[1][-3:] for one in outputs[0]] == [b"y\r\n"] * 3, "nothing is left of before"
    assert outputs[0][0][2] == 1


def test_tables_do_not_keep_what_is_gone(twin: Twin) -> None:
    world = World(twin)
    world.route(b"PUB m 1\r\nx\r\nPUB g 1\r\nx\r\n")
    gone = weakref.ref(world.peers[3])
    world.peers.append(world.table)  # type: ignore[arg-type]
    world.peers[0].name = world  # type: ignore[assignment]
    del world
    gc.collect()
    assert gone() is None


def test_every_size_has_room(twin: Twin) -> None:
    world = World(twin)
    for size in range(1100):
        payload = b"x" * size
        found = world.route(b"PUB o %d\r\n%s\r\n" % (size, payload))[5]
        assert isinstance(found, tuple)
        assert found[0] == [("a", b"MSG o 1 %d\r\n%s\r\n" % (size, payload), 1, size)]


def test_without_memory_nothing_is_lost_and_nothing_comes_twice() -> None:
    """Each allocation of a call fails once: what it takes is whole, and the rest follows."""
    memory = pytest.importorskip("_testcapi")
    found = compiled()
    assert found is not None
    data = (
        b"PUB o 1\r\nx\r\nPUB t r 2\r\nyy\r\nHPUB m 2 3\r\nabc\r\nPUB g 1\r\nz\r\nPUB s 1\r\nq\r\n"
        b"PUB ss.1 1\r\na\r\nPUB ss.2 1\r\nb\r\nPUB oo.1 1\r\nc\r\nPUB oo.2 1\r\nd\r\n"
    )
    expected = summed([World(found).table.route(data, 0, None, FLAGS, PLENTY, 7)[5]])
    failed = stopped = whole = 0
    for number in range(150):
        world = World(found)
        position, lot, outputs = 0, 7, None
        memory.set_nomemory(number, number + 1)
        try:
            position, _, _, _, lot, outputs = world.table.route(data, 0, None, FLAGS, PLENTY, 7)
        except MemoryError:
            failed += 1
        finally:
            memory.remove_mem_hooks()
        if position == 0:
            world.table.clear()
            world.fill()
        stopped += 0 < position < len(data)
        whole += position == len(data)
        rest = world.table.route(data, position, None, FLAGS, PLENTY, lot)[5]
        assert summed([outputs, rest]) == expected, number
    assert failed > 10 and stopped > 5 and whole > 10


def summed(calls: list[contract.Outputs | None]) -> dict[str, object]:
    """What some calls gave each peer, sink and subscription together."""
    texts: dict[str, bytes] = {}
    rows: dict[str, list[contract.Row]] = {}
    counts: dict[str, list[int]] = {}
    for written, captured, delivered in filter(None, calls):
        for peer, pieces, *numbers in written:
            texts[str(peer)] = texts.get(str(peer), b"") + b"".join(pieces)
            counts[str(peer)] = sums(counts.get(str(peer)), numbers)
        for sink, more in captured:
            rows[str(sink)] = rows.get(str(sink), []) + more
        for counted, count in delivered:
            counts[str(counted)] = sums(counts.get(str(counted)), [count])
    return {"texts": texts, "rows": rows, "counts": counts}


def sums(before: list[int] | None, more: list[int]) -> list[int]:
    return [one + two for one, two in zip(before or [0] * len(more), more, strict=True)]


def test_rows_are_not_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines alike whose subjects go elsewhere: what is found in vain is bounded."""
    looked = 0
    made = row_expression

    class Counting:
        def __init__(self, verb: bytes, shape: Shape) -> None:
            self.found = made(verb, shape)

        def findall(self, data: bytes, position: int, end: int) -> list[tuple[bytes, ...]]:
            nonlocal looked
            rows = self.found.findall(data, position, end)
            looked += len(rows)
            return rows

    monkeypatch.setattr(pure, "row_expression", Counting)
    world = World(interpreted())
    names = (b"o", b"o", b"o", b"o", b"o", b"o", b"o", b"o", b"o", b"o", b"o", b"h")
    data = b"".join(b"PUB %s.%05d 1\r\nx\r\n" % (names[n % 12], n) for n in range(9000))
    assert world.route(data)[1] == 9000
    assert 0 < looked <= 4 * pure.ROWS_MAX, "by their bytes, some more are found"


# Both beside each other

SUBJECTS = st.sampled_from(
    [
        *(b"n", b"o.1", b"o.2", b"h", b"t", b"s", b"m", b"q", b"g.1", b"g.2", b"x"),
        *(b"oo.1", b"oo.22", b"oo..1", b"oo.1.", b"ss.1", b"ss.2", b"hh.1", b"hh.2", b"qq.1"),
        *(b"qq.2", b"ooo.1.2", b"ooo.1.3", b"ooo.2.3", b"ooo.1", b"oooo.1.2"),
    ]
)
REPLIES = st.sampled_from([b"", b"", b"_I.1 ", b"_I.22 ", b"_R_.x "])
PAYLOADS = st.sampled_from([b"", b"x", b"PUB o 1\r\nx\r\n", b"\r\n\r\n", b"y" * 40, b"N" * 20])
HEADER_BLOCKS = st.sampled_from(
    [b"", b"NATS/1.0\r\n\r\n", b"Nats-Trace-Dest: x", b"Nats-Trace-Des"]
)


def plain(subject: bytes, reply: bytes, payload: bytes) -> bytes:
    return b"PUB %s %s%d\r\n%s\r\n" % (subject, reply, len(payload), payload)


def headed(subject: bytes, reply: bytes, block: bytes, payload: bytes) -> bytes:
    sizes = (len(block), len(block) + len(payload))
    return b"HPUB %s %s%d %d\r\n%s%s\r\n" % (subject, reply, *sizes, block, payload)


MESSAGES = st.one_of(
    st.builds(plain, SUBJECTS, REPLIES, PAYLOADS),
    st.builds(headed, SUBJECTS, REPLIES, HEADER_BLOCKS, PAYLOADS),
)
REPEATED = st.builds(lambda one, count: one * count, MESSAGES, st.integers(2, 30))
ROWS = st.builds(
    lambda subjects, reply, payload, count: b"".join(
        plain(subjects[n % len(subjects)], reply and b"%s%d " % (reply, n), payload)
        for n in range(count)
    ),
    st.lists(SUBJECTS, min_size=1, max_size=2),
    st.sampled_from([b"", b"_I.", b"_R_."]),
    PAYLOADS,
    st.integers(9, 40),
)
ODD = st.sampled_from([b"PING\r\n", b"PUB o 01\r\nx\r\n", b"PUB o\t1\r\nx\r\n", b"\r\n", b"P"])
PARTS = st.lists(st.one_of(MESSAGES, REPEATED, REPEATED, ROWS, ROWS, ODD), max_size=8)


@given(PARTS, st.integers(0, 7), st.integers(0, (1 << 64) - 1), st.integers(0, 200))
@settings(max_examples=examples(300), deadline=None)
def test_they_agree(parts: list[bytes], flags: int, lot: int, cut: int) -> None:
    data = b"".join(parts)
    agree(data[cut:] if cut < len(data) // 2 else data, flags, lot)


def test_nothing_is_asked_for_what_stands_behind_a_stop() -> None:
    lines = [b"PUB n _I.%d 0\r\n\r\n" % number for number in range(10)]
    lines += [b"PUB o.1 _R_.%d 0\r\n\r\n" % number for number in range(9)]
    agree(b"".join(lines), 0, 0)


@pytest.mark.parametrize("budget", [40, 100, 131, 132, 133, 400])
def test_they_agree_on_what_is_left_when_subjects_are_asked_for(budget: int) -> None:
    """Among rows that are alike: one that is for others, and some that are all new."""
    alike = [b"ss.1"] * 10
    for behind in ([b"s", b"1"], [b"s.%d" % number for number in range(30)]):
        for build in (published, headed_alike):
            agree(build([*alike, *behind]), FLAGS, 7, budget)


def headed_alike(subjects: list[bytes]) -> bytes:
    return b"".join(headed(subject, b"", b"ab", b"c") for subject in subjects)


@given(st.binary(max_size=300), PARTS, st.integers(0, 7))
@settings(max_examples=examples(150), deadline=None)
def test_they_agree_on_anything(noise: bytes, parts: list[bytes], flags: int) -> None:
    data = bytearray(b"".join(parts))
    for offset, byte in enumerate(noise):
        if data:
            data[(offset * 7919 + byte) % len(data)] = byte
    agree(bytes(data) + noise, flags, 1)
