"""What stays together in a parallel run."""

from collections import OrderedDict
from pathlib import Path
from threading import Thread

import pytest

from tests.support.alone import taking_part
from tests.support.reporting import is_wanted
from tests.support.sharing import (
    ALONE,
    BESIDE,
    ROOMS,
    SHARE_NOTHING,
    SPARK_SESSION,
    Sharing,
    choose,
    together,
)

ROOT = Path(__file__).parent.parent


def test_files_stay_whole_and_those_with_a_session_together() -> None:
    assert together("tests/api/test_codec.py::test_one[a::b]") == "tests/api/test_codec.py"
    one, other, *_ = (together(f"{file}::test_one") for file in sorted(SPARK_SESSION))
    assert one == other


def test_what_shares_nothing_goes_to_any_worker() -> None:
    one, other = (f"{SHARE_NOTHING}test_simulation.py::test_seeds[{seed}]" for seed in (1, 2))
    assert together(one) != together(other)


def test_those_that_run_alone_wait_in_one_worker() -> None:
    assert {together(f"{file}::test_one") for file in ALONE} == {"alone"}


def test_the_places_are_there() -> None:
    assert (ROOT / SHARE_NOTHING).is_dir()
    assert all((ROOT / file).is_file() for file in SPARK_SESSION)
    assert all((ROOT / file).is_file() for file in (*ALONE, BESIDE))
    assert BESIDE.startswith(SHARE_NOTHING)


def test_those_that_run_alone_are_known() -> None:
    marked = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "tests").rglob("test_*.py")
        if "mark.alone" in file.read_text() and file.name != Path(__file__).name
    }
    assert marked == ALONE


def test_workers_begin_with_what_suits_them() -> None:
    scopes = [
        f"{BESIDE}::test_a",
        "alone",
        "tests/broker/test_a.py",
        "tests/broker/test_b.py",
        "tests/contract/test_a.py",
        "tests/commands/test_a.py",
        "tests/dashboard/test_a.py",
    ]
    assert choose(scopes, 0, 2) == choose(scopes, 1, 2) == "tests/broker/test_a.py"
    firsts = [choose(scopes, 2 + one, 2) for one in range(len(ROOMS))]
    assert firsts == scopes[-3:]
    assert choose(scopes, 2 + len(ROOMS), 2) == firsts[0]
    assert choose(scopes[:-3], 3, 2) == "tests/broker/test_a.py"
    assert choose(scopes[:-5], 0, 2) == choose(scopes[:-5], 5, 2) == "alone"
    assert choose(scopes[:1], 0, 2) == scopes[0]


def test_who_runs_alone_leaves_a_seat_to_who_calculates(tmp_path: Path) -> None:
    order = []

    def follow(seats: int) -> None:
        with taking_part(tmp_path, alone=False, seats=seats):
            order.append(f"of {seats}")

    with taking_part(tmp_path, alone=True):
        with taking_part(tmp_path, alone=False, seats=1):
            waiting = [Thread(target=follow, args=(seats,)) for seats in (0, 1)]
            for one in waiting:
                one.start()
            follow(2)
            order.append("a seat is left")
        order.append("it is over")
    for one in waiting:
        one.join()
    assert order[:2] == ["of 2", "a seat is left"]
    assert sorted(order[2:]) == ["it is over", "of 0", "of 1"]
    assert order.index("it is over") < order.index("of 0"), "the seat that is left is not for it"


class EndingWorker:
    """It takes no more."""

    shutting_down = True


def test_a_file_that_is_done_is_forgotten() -> None:
    names = ["tests/a.py::test_one", "tests/a.py::test_two", "tests/b.py::test_one"]
    worker = EndingWorker()
    scheduler = Sharing.__new__(Sharing)  # of a run there is only what is asked for
    scheduler.registered_collections = {worker: names}
    units = {
        file: OrderedDict.fromkeys((one for one in names if one.startswith(file)), False)
        for file in ("tests/a.py", "tests/b.py")
    }
    scheduler.assigned_work = {worker: units}
    scheduler.mark_test_complete(worker, 1)
    assert list(units) == ["tests/a.py", "tests/b.py"] and units["tests/a.py"][names[1]]
    scheduler.mark_test_complete(worker, 0)
    assert list(units) == ["tests/b.py"]


@pytest.mark.parametrize(
    ("when", "outcome", "sections", "wanted"),
    [
        ("setup", "passed", [], False),
        ("teardown", "passed", [], False),
        ("call", "passed", [], True),
        ("setup", "skipped", [], True),
        ("setup", "failed", [], True),
        ("teardown", "failed", [], True),
        ("teardown", "passed", [("Captured stdout teardown", "words")], True),
    ],
)
def test_what_went_well_is_told_once(
    when: str, outcome: str, sections: list[tuple[str, str]], wanted: bool
) -> None:
    data = {"when": when, "outcome": outcome, "sections": sections}
    assert is_wanted("testreport", {"data": data}) is wanted
    assert is_wanted("runtest_protocol_complete", {}) and not is_wanted("logstart", {})
