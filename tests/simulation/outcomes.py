"""What plans come to without any bug. Many tests look at the same ones; each is run once.

A run depends on nothing but its plan: `test_same_seed_same_run_in_every_process`. So the workers of
a parallel run tell each other by files of a directory, if they have one.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tests.simulation.plan import Plan
from tests.simulation.run import Simulation, digest, failure_of


class Outcome(NamedTuple):
    """How a run ended; what it did is told only of one that kept all promises."""

    failure: str
    digest: str = ""
    acknowledged: int = 0
    delivered: int = 0
    confirmed: int = 0
    heard: int = 0
    """What clients that only talk heard of each other."""
    answers: int = 0
    done: int = 0
    """Messages that consumers are done with."""


class Outcomes:
    """All that are known."""

    def __init__(self) -> None:
        self.directory: Path | None = None
        self._known: dict[Plan, Outcome] = {}

    @contextmanager
    def shared(self, directory: Path) -> Iterator[None]:
        """Tell them, and be told, by files."""
        directory.mkdir(exist_ok=True)
        self.directory = directory
        yield
        self.directory = None

    def of(self, plan: Plan) -> Outcome:
        """Run a plan, unless somebody did. Never while a bug is planted."""
        found = self._known.get(plan) or self._told(plan)
        if found is None:
            found = _run(plan)
            self._tell(plan, found)
        self._known[plan] = found
        return found

    def _told(self, plan: Plan) -> Outcome | None:
        path = self._path(plan)
        return (
            Outcome(*json.loads(path.read_text())) if path is not None and path.exists() else None
        )

    def _tell(self, plan: Plan, outcome: Outcome) -> None:
        path = self._path(plan)
        if path is not None:
            part = path.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps(outcome))
            part.replace(path)

    def _path(self, plan: Plan) -> Path | None:
        return self.directory and self.directory / sha256(repr(plan).encode()).hexdigest()


OUTCOMES = Outcomes()


def outcome(plan: Plan) -> Outcome:
    """What a plan comes to."""
    return OUTCOMES.of(plan)


def _run(plan: Plan) -> Outcome:
    run = Simulation(plan)
    failure = failure_of(run)
    if failure:
        return Outcome(failure)
    known = [one.consumer for one in run.checker.groups.values() if one.consumer]
    return Outcome(
        "",
        digest(run),
        run.checker.acknowledged,
        run.hub.delivered,
        len(run.hub.confirmed),
        run.room.heard,
        run.asker.answers,
        sum(len(one.done) for one in known),
    )
