"""What the same tests did on two servers, and which of it was expected."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

EXPECTED = Path(__file__).with_name("expected.toml")
REAL, OURS = "nats-server", "jsctl broker"


class Outcome(IntEnum):
    """How a test ended, the worst last."""

    PASS = 0
    SKIP = 1
    FAIL = 2


@dataclass(frozen=True, slots=True)
class Result:
    """One test on one server, and the first line of what pytest said about it."""

    outcome: Outcome
    message: str = ""
    seconds: float = 0.0


Results = dict[str, Result]


class Verdict(IntEnum):
    """What a pair of outcomes means."""

    SAME = 0
    EXPECTED_FAILURE = 1
    FAILS_ON_BOTH = 2
    UNEXPECTED_FAILURE = 3
    UNEXPECTED_PASS = 4
    NOT_RUN = 5


BAD = (Verdict.UNEXPECTED_FAILURE, Verdict.UNEXPECTED_PASS, Verdict.NOT_RUN)


@dataclass(frozen=True, slots=True)
class Difference:
    """One test that did not pass on both servers alike."""

    test: str
    real: Outcome | None
    ours: Outcome | None
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Expected:
    """Why a test of the list fails, and where."""

    reason: str
    servers: frozenset[str] = frozenset((OURS,))
    sometimes: bool = False
    """A race of the suite's: that it passes is no surprise either."""

    def surprise(self, server: str, end: Outcome) -> bool:
        """Whether a test passed that is to fail there."""
        return server in self.servers and end is Outcome.PASS and not self.sometimes


def read_expected(path: Path = EXPECTED) -> dict[str, Expected]:
    """Test -> what the list says of it."""
    found: dict[str, Expected] = {}
    for name, part in tomllib.loads(path.read_text()).items():
        for test in part["tests"]:
            if test in found:
                raise ValueError(f"{test} is in the list twice, again under {name}")
            servers = frozenset(part.get("servers", (OURS,)))
            found[test] = Expected(part["reason"], servers, part.get("sometimes", False))
    return found


def verdict(real: Outcome | None, ours: Outcome | None, expected: Expected | None) -> Verdict:
    """What it means that a test ended so on nats-server and so on ours; None: it was not run."""
    if real is None or ours is None:
        return Verdict.NOT_RUN
    if expected is not None:
        if expected.surprise(REAL, real) or expected.surprise(OURS, ours):
            return Verdict.UNEXPECTED_PASS
        if ours is not Outcome.PASS and OURS in expected.servers:
            return Verdict.EXPECTED_FAILURE
    if ours is Outcome.PASS or (ours is real is Outcome.SKIP):
        return Verdict.SAME
    if real is Outcome.FAIL and expected is None:
        return Verdict.FAILS_ON_BOTH
    return Verdict.UNEXPECTED_FAILURE


def verdict_alone(server: str, end: Outcome, expected: Expected | None) -> Verdict:
    """What it means that a test ended so, where only one server was run."""
    if expected is not None and server in expected.servers:
        if expected.surprise(server, end):
            return Verdict.UNEXPECTED_PASS
        return Verdict.SAME if end is Outcome.PASS else Verdict.EXPECTED_FAILURE
    return Verdict.UNEXPECTED_FAILURE if end is Outcome.FAIL else Verdict.SAME


def differences(
    real: Mapping[str, Result], ours: Mapping[str, Result], expected: Mapping[str, Expected]
) -> list[Difference]:
    """Every test that is not simply the same, in order of its name."""
    found = []
    for test in sorted(real.keys() | ours.keys()):
        one, two = real.get(test), ours.get(test)
        ends = (one.outcome if one else None, two.outcome if two else None)
        listed = expected.get(test)
        meaning = verdict(*ends, listed)
        if meaning is not Verdict.SAME or ends[0] is not ends[1]:
            why = listed.reason if listed else two.message if two else ""
            found.append(Difference(test, *ends, meaning, why))
    return found


def differences_alone(
    server: str, results: Mapping[str, Result], expected: Mapping[str, Expected]
) -> list[Difference]:
    """Every test of one server that did not simply pass or was not run, in order of its name."""
    found = []
    for test in sorted(results):
        end, listed = results[test], expected.get(test)
        meaning = verdict_alone(server, end.outcome, listed)
        if meaning is not Verdict.SAME:
            real = end.outcome if server == REAL else None
            ours = None if server == REAL else end.outcome
            why = listed.reason if listed else end.message
            found.append(Difference(test, real, ours, meaning, why))
    return found


def strangers(expected: Iterable[str], ran: Iterable[str], package: str) -> list[str]:
    """Tests of the list that the package's suite does not have (any more)."""
    known = set(ran)
    return sorted(test for test in expected if test.startswith(f"{package} ") and test not in known)


def summary(results: Mapping[str, Result]) -> Counter[Outcome]:
    """How many tests ended how."""
    return Counter(result.outcome for result in results.values())


def table(rows: Iterable[Difference]) -> str:
    """The differences as text, one test a line and its reason below."""
    lines = []
    for row in rows:
        ends = " ".join(f"{end.name.lower() if end is not None else '-':5}" for end in
                        (row.real, row.ours))  # fmt: skip
        word = row.verdict.name.lower().replace("_", " ")
        lines.append(f"{ends}  {word:18}  {row.test}")
        if row.why:
            lines.append(f"{'':33}{row.why}")
    return "\n".join(lines)
