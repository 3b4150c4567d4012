"""The comparison of two runs, on made-up results: what is expected, and what ends with status 1."""

from pathlib import Path

import pytest

from tests.conformance.compare import (
    BAD,
    Outcome,
    Result,
    Verdict,
    differences,
    read_expected,
    strangers,
    table,
    verdict,
)
from tests.conformance.suites import SUITES, read_report

PASS, SKIP, FAIL = Outcome.PASS, Outcome.SKIP, Outcome.FAIL


@pytest.mark.parametrize(
    ("real", "ours", "expected", "meaning"),
    [
        (PASS, PASS, False, Verdict.SAME),
        (SKIP, SKIP, False, Verdict.SAME),
        (SKIP, PASS, False, Verdict.SAME),
        (FAIL, PASS, False, Verdict.SAME),
        (PASS, FAIL, False, Verdict.UNEXPECTED_FAILURE),
        (PASS, SKIP, False, Verdict.UNEXPECTED_FAILURE),
        (SKIP, FAIL, False, Verdict.UNEXPECTED_FAILURE),
        (FAIL, FAIL, False, Verdict.FAILS_ON_BOTH),
        (PASS, FAIL, True, Verdict.EXPECTED_FAILURE),
        (PASS, PASS, True, Verdict.UNEXPECTED_PASS),
        (PASS, None, True, Verdict.NOT_RUN),
        (None, PASS, False, Verdict.NOT_RUN),
    ],
)
def test_what_two_outcomes_mean(
    real: Outcome | None, ours: Outcome | None, expected: bool, meaning: Verdict
) -> None:
    assert verdict(real, ours, expected) is meaning


def test_only_what_nobody_expected_is_bad() -> None:
    assert Verdict.EXPECTED_FAILURE not in BAD
    assert {Verdict.UNEXPECTED_FAILURE, Verdict.UNEXPECTED_PASS, Verdict.NOT_RUN} == set(BAD)


def test_the_table_names_the_test_its_ends_and_the_reason() -> None:
    real = {"p a::b": Result(PASS), "p a::c": Result(PASS)}
    ours = {"p a::b": Result(FAIL, "no websocket"), "p a::c": Result(PASS)}
    rows = differences(real, ours, {"p a::b": "websocket is not there"})
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
    found = read_report("p", path)
    assert found["p t.C::one"] == Result(FAIL, "teardown", 0.0)
    assert found["p t.C::two"].outcome is SKIP


def test_every_expected_failure_has_a_reason_and_a_suite() -> None:
    expected = read_expected()
    names = {suite.name for suite in SUITES}
    for test, reason in expected.items():
        assert test.partition(" ")[0] in names, test
        assert reason
