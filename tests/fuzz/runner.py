"""Runs a target over seeds, corpus and mutations; a finding is made small and kept."""

import gc
import hashlib
import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fuzz.target import Target

MINIMIZE_RUNS_MAX = 2000
LOOK_EVERY = 64
"""Inputs between two looks at the clock."""


@dataclass(slots=True)
class Finding:
    """An input that broke a property; `number` and `seed` make it again."""

    target: str
    seed: int
    number: int
    data: bytes
    error: str

    def text(self) -> str:
        """For a person who wants to see it again."""
        again = f"python -m tests.fuzz --target {self.target} --from {self.seed}"
        return f"{self.target} {again} (input {self.number})\n  {self.data!r}\n{self.error}"


@dataclass(slots=True)
class Outcome:
    """What a run of one target was."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    findings: list[Finding] = field(default_factory=list)


def number_rng(seed: int, number: int) -> random.Random:
    """The chance of one input."""
    return random.Random((seed << 40) | number)


def attempt(
    target: Target,
    data: bytes,
    rng: random.Random,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[str, float]:
    """How the target complains about an input, or nothing; and the time it took."""
    started = clock()
    try:
        target.run(data, rng)
    except Exception:  # noqa: BLE001 (whatever comes out is the finding)
        return traceback.format_exc(limit=-6), 0.0
    return "", clock() - started


def complaint(target: Target, data: bytes, seed: int, number: int) -> tuple[str, float]:
    """As `attempt`; being slow is a complaint too, when it happens every time.

    No more CPU time than time goes by, and to ask for it costs more than most inputs do. So it is
    asked for only when an input took long, be it because of another process.
    """
    error, took = attempt(target, data, number_rng(seed, number))
    if error or took <= target.cost_s_max:
        return error, took
    for _ in range(3):
        error, took = attempt(target, data, number_rng(seed, number), time.process_time)
        if error or took <= target.cost_s_max:
            return error, took
    return f"an input of {len(data)} bytes takes {took:.2f} s", took


def minimized(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """A smaller input that fails too, within a number of attempts."""
    runs, step = 0, max(len(data) // 2, 1)
    while step and runs < MINIMIZE_RUNS_MAX:
        at, before = 0, len(data)
        while at < len(data) and runs < MINIMIZE_RUNS_MAX:
            smaller = data[:at] + data[at + step :]
            runs += 1
            if fails(smaller):
                data = smaller
            else:
                at += step
        if step == 1 and len(data) == before:
            break
        step = step // 2 or (1 if len(data) < before else 0)
    return data


def fuzz(
    target: Target,
    *,
    seed: int,
    inputs: int = 0,
    seconds: float = 0.0,
    findings_max: int = 5,
    keep: bool = False,
) -> Outcome:
    """Replay the corpus, then make inputs until a number or a time is reached."""
    outcome = Outcome(target.name)
    # What the process held before is not looked through by the collector at the cost of an input.
    # That is done once for runs that follow each other: looking through all takes a while.
    held = gc.get_freeze_count() > 0
    if not held:
        gc.collect()
        gc.freeze()
    pool = target.seeds()
    started = time.monotonic()
    known = [data for _, data in target.corpus()]
    for data in [*pool, *known]:
        _one(target, outcome, data, seed, 0, keep)
    pool = [*pool, *known]
    number = 0
    while len(outcome.findings) < findings_max and (not inputs or number < inputs):
        number += 1
        rng = number_rng(seed, number)
        _one(target, outcome, target.make(rng, pool), seed, number, keep)
        if seconds and not number % LOOK_EVERY and time.monotonic() - started > seconds:
            break
    outcome.seconds = time.monotonic() - started
    if not held:
        gc.unfreeze()
    return outcome


def _one(target: Target, outcome: Outcome, data: bytes, seed: int, number: int, keep: bool) -> None:
    error, took = complaint(target, data, seed, number)
    outcome.inputs += 1
    outcome.slowest_s = max(outcome.slowest_s, took)
    if not error:
        return
    last = error.strip().rpartition("\n")[2]
    if any(known.error.strip().endswith(last) for known in outcome.findings):
        return
    small = minimized(data, lambda one: bool(complaint(target, one, seed, number)[0]))
    error = complaint(target, small, seed, number)[0] or error
    outcome.findings.append(Finding(target.name, seed, number, small, error))
    if keep:
        target.keep(small, f"found-{hashlib.sha256(small).hexdigest()[:12]}")
