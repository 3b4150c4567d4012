"""The matrix of faults, a line for each row and seed; status 1 if one does not hold."""

import argparse
import sys

import tests.faults
from tests.faults.play import play
from tests.faults.rows import ROWS, Row
from tests.faults.verdict import Outcome
from tests.faults.volumes import NoVolumes

LINE = "{:>3} {:<28} {:>6} {:>7} {:>8} {:>5} {:>8} {:>9} {:>6} {:>9} {:>9}  {}"


def verdict(row: Row, outcome: Outcome, patience: float = 1.0) -> str:
    """What does not hold; "ok" if all does. Times may be longer by a factor."""
    silence_s, whole_s = patience * row.silence_s, patience * row.whole_s
    wrong = []
    if not outcome.is_safe:
        wrong.append("NOT SAFE")
    if outcome.silence_s > silence_s:
        wrong.append(f"silent for more than {silence_s:g} s")
    if outcome.whole_s >= whole_s:
        wrong.append(f"not whole within {whole_s:g} s")
    return ", ".join(wrong) or "ok"


def run(row: Row, seed: int, rounds: int, patience: float) -> bool:
    """One line; whether it holds."""
    notes: list[str] = []
    try:
        outcome = play(row, seed, rounds, patience, notes)
    except NoVolumes as reason:
        told = [row.number, row.name, seed, rounds, *"-------"]
        print(LINE.format(*told, f"skipped: {reason}"), flush=True)
        return True
    except (AssertionError, ExceptionGroup) as error:
        told = [row.number, row.name, seed, rounds, *"-------"]
        why = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        print(LINE.format(*told, f"FAILED: {why}"), *notes, sep="\n      ", flush=True)
        return False
    found = verdict(row, outcome, patience)
    told = [row.number, row.name, seed, rounds, outcome.acked, outcome.lost, outcome.doubled]
    told += [outcome.diverged, outcome.again, f"{outcome.silence_s:.2f}", f"{outcome.whole_s:.1f}"]
    print(LINE.format(*told, found), *(notes if found != "ok" else ()), sep="\n      ", flush=True)
    return found == "ok"


def main() -> int:
    """Parse the words and run."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=tests.faults.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--row", action="append", help="a row's name or number; all if not given")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each row")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed")
    parser.add_argument("--rounds", type=int, default=5, help="faults in each run")
    parser.add_argument(
        "--patience", type=float, default=1.0, help="targets are so much longer, on a busy machine"
    )
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    told = parser.parse_args()
    wanted = {word.lower() for word in told.row or ()}
    rows = [one for one in ROWS if not wanted or {one.name, str(one.number)} & wanted]
    if told.list or not rows:
        for one in ROWS:
            print(f"{one.number:>3} {one.name}")
        return 0 if told.list else 2
    heads = ("row", "fault", "seed", "rounds", "acked", "lost", "doubled", "diverged", "again")
    print(LINE.format(*heads, "silence s", "whole s", "verdict"))
    seeds = range(told.first, told.first + told.seeds)
    held = [run(row, seed, told.rounds, told.patience) for row in rows for seed in seeds]
    print(f"{sum(held)} of {len(held)} runs hold")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
