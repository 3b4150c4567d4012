"""What stays together in a parallel run."""

from pathlib import Path

from tests.support.sharing import SHARE_NOTHING, SPARK_SESSION, together

ROOT = Path(__file__).parent.parent


def test_files_stay_whole_and_those_with_a_session_together() -> None:
    assert together("tests/api/test_codec.py::test_one[a::b]") == "tests/api/test_codec.py"
    one, other, *_ = (together(f"{file}::test_one") for file in sorted(SPARK_SESSION))
    assert one == other


def test_what_shares_nothing_goes_to_any_worker() -> None:
    one, other = (f"{SHARE_NOTHING}test_simulation.py::test_seeds[{seed}]" for seed in (1, 2))
    assert together(one) != together(other)


def test_the_places_are_there() -> None:
    assert (ROOT / SHARE_NOTHING).is_dir()
    assert all((ROOT / file).is_file() for file in SPARK_SESSION)
