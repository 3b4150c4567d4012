"""The comparison of two runs, on made-up results: what is expected, and what ends with status 1."""

from pathlib import Path

import pytest

from tests.conformance.clients import client_suites
from tests.conformance.compare import (
    BAD,
    OURS,
    REAL,
    Expected,
    Outcome,
    Result,
    Verdict,
    differences,
    differences_alone,
    read_expected,
    strangers,
    table,
    verdict,
    verdict_alone,
)
from tests.conformance.java import JAVA_SUITE
from tests.conformance.running import read_report
from tests.conformance.rust import RUST_SUITE
from tests.conformance.suites import SUITES

PASS, SKIP, FAIL = Outcome.PASS, Outcome.SKIP, Outcome.FAIL
REFUSED = Expected("websocket is not there")
BROKEN = Expected("the suite's own mistake", frozenset((REAL, OURS)))
THEIRS = Expected("a race that only we win", frozenset((REAL,)), sometimes=True)


@pytest.mark.parametrize(
    ("real", "ours", "expected", "meaning"),
    [
        (PASS, PASS, None, Verdict.SAME),
        (SKIP, SKIP, None, Verdict.SAME),
        (SKIP, PASS, None, Verdict.SAME),
        (FAIL, PASS, None, Verdict.SAME),
        (PASS, FAIL, None, Verdict.UNEXPECTED_FAILURE),
        (PASS, SKIP, None, Verdict.UNEXPECTED_FAILURE),
        (SKIP, FAIL, None, Verdict.UNEXPECTED_FAILURE),
        (FAIL, FAIL, None, Verdict.FAILS_ON_BOTH),
        (PASS, FAIL, REFUSED, Verdict.EXPECTED_FAILURE),
        (PASS, PASS, REFUSED, Verdict.UNEXPECTED_PASS),
        (PASS, None, REFUSED, Verdict.NOT_RUN),
        (None, PASS, None, Verdict.NOT_RUN),
        (FAIL, FAIL, BROKEN, Verdict.EXPECTED_FAILURE),
        (FAIL, PASS, BROKEN, Verdict.UNEXPECTED_PASS),
        (PASS, FAIL, BROKEN, Verdict.UNEXPECTED_PASS),
        (FAIL, PASS, THEIRS, Verdict.SAME),
        (PASS, PASS, THEIRS, Verdict.SAME),
        (FAIL, FAIL, THEIRS, Verdict.UNEXPECTED_FAILURE),
        (PASS, FAIL, THEIRS, Verdict.UNEXPECTED_FAILURE),
    ],
)
def test_what_two_outcomes_mean(
    real: Outcome | None, ours: Outcome | None, expected: Expected | None, meaning: Verdict
) -> None:
    assert verdict(real, ours, expected) is meaning


@pytest.mark.parametrize(
    ("server", "end", "expected", "meaning"),
    [
        (OURS, PASS, None, Verdict.SAME),
        (OURS, SKIP, None, Verdict.SAME),
        (OURS, FAIL, None, Verdict.UNEXPECTED_FAILURE),
        (OURS, FAIL, REFUSED, Verdict.EXPECTED_FAILURE),
        (OURS, PASS, REFUSED, Verdict.UNEXPECTED_PASS),
        (OURS, FAIL, BROKEN, Verdict.EXPECTED_FAILURE),
        (REAL, PASS, REFUSED, Verdict.SAME),
        (REAL, FAIL, REFUSED, Verdict.UNEXPECTED_FAILURE),
        (REAL, FAIL, BROKEN, Verdict.EXPECTED_FAILURE),
        (REAL, PASS, BROKEN, Verdict.UNEXPECTED_PASS),
        (REAL, FAIL, THEIRS, Verdict.EXPECTED_FAILURE),
        (REAL, PASS, THEIRS, Verdict.SAME),
        (OURS, FAIL, THEIRS, Verdict.UNEXPECTED_FAILURE),
        (OURS, PASS, THEIRS, Verdict.SAME),
    ],
)
def test_what_the_outcome_of_one_server_means(
    server: str, end: Outcome, expected: Expected | None, meaning: Verdict
) -> None:
    assert verdict_alone(server, end, expected) is meaning


def test_one_server_alone_is_compared_with_the_list() -> None:
    results = {"p a::b": Result(FAIL, "boom"), "p a::c": Result(FAIL), "p a::d": Result(PASS)}
    rows = differences_alone(OURS, results, {"p a::c": REFUSED})
    assert [(row.test, row.verdict in BAD) for row in rows] == [("p a::b", True), ("p a::c", False)]
    assert "boom" in table(rows)
    theirs = differences_alone(REAL, results, {"p a::c": REFUSED})
    assert [(row.test, row.real, row.ours) for row in theirs] == [
        ("p a::b", FAIL, None),
        ("p a::c", FAIL, None),
    ]


def test_only_what_nobody_expected_is_bad() -> None:
    assert Verdict.EXPECTED_FAILURE not in BAD
    assert {Verdict.UNEXPECTED_FAILURE, Verdict.UNEXPECTED_PASS, Verdict.NOT_RUN} == set(BAD)


def test_the_table_names_the_test_its_ends_and_the_reason() -> None:
    real = {"p a::b": Result(PASS), "p a::c": Result(PASS)}
    ours = {"p a::b": Result(FAIL, "no websocket"), "p a::c": Result(PASS)}
    rows = differences(real, ours, {"p a::b": REFUSED})
    assert [row.test for row in rows] == ["p a::b"]
    text = table(rows)
    for word in ("pass", "fail", "expected failure", "p a::b", "websocket is not there"):
        assert word in text


def test_a_test_of_the_list_that_the_suite_does_not_have_is_named() -> None:
    listed = ["nats a::gone", "nats a::there", "other a::gone"]
    assert strangers(listed, ["nats a::there"], "nats") == ["nats a::gone"]


def test_a_report_is_read_with_the_worst_end_of_a_test(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="t.C" name="one" time="0.5"/>'
        '<testcase classname="t.C" name="one" time="0"><error message="teardown">x</error>'
        "</testcase>"
        '<testcase classname="t.C" name="two" time="1"><skipped message="old"/></testcase>'
        "</testsuite></testsuites>"
    )
    found = read_report("p", path, path)
    assert found["p t.C::one"] == Result(FAIL, "teardown", 0.0)
    assert found["p t.C::two"].outcome is SKIP


def test_every_expected_failure_has_a_reason_and_a_suite() -> None:
    expected = read_expected()
    names = {suite.name for suite in SUITES} | client_suites() | {JAVA_SUITE, RUST_SUITE}
    for test, listed in expected.items():
        assert test.partition(" ")[0] in names, test
        assert listed.reason
        assert listed.servers and listed.servers <= {REAL, OURS}
