"""Requests that are drawn from seeds, asked of both servers with the same in them: every field of
every answer is the same, but those of one list. `python -m tests.differential` draws more."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.api.subjects import ROUTES
from tests.differential.bodies import DIRECT, OPERATORS, WORDS
from tests.differential.cases import ABOUT_MESSAGES, CASES, differing, played
from tests.differential.twins import Twins, running

SEEDS = range(1, 9)
FOUND = [
    ("direct", 600001),  # the last messages of subjects, from a sequence on
    ("fast", 4106),  # a time to live in a batch, wrong and not allowed
    ("delivered", 1915),  # no_wait behind a pull that had all of its messages
    ("pulls", 600006),  # a pull that nobody can serve in time
    ("pulls", 800008),  # a request that ends too soon
    ("streams", 800013),  # a mistake, and no room either
]
"""Cases whose answers were not the same once (case, seed)."""
DRAWN = {
    **dict.fromkeys(("STREAM.CREATE", "STREAM.UPDATE"), "streams"),
    **dict.fromkeys(("CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE"), "consumers"),
    "CONSUMER.MSG.NEXT": "pulls",
    **{subject.partition(".{")[0]: "others" for subject in WORDS},
    **{subject.partition(".{")[0]: "operators" for subject in OPERATORS},
    **{subject.partition(".{")[0]: "direct" for subject in DIRECT},
}
"""Requests of both servers -> the case that draws them, valid ones and others."""
ABOUT_ALL = ("limited", "strict")
"""Cases of what any request may meet: an account's limits, strictness, levels."""
OURS = {
    "STREAM.CHECK": "broker/assets/repair/test_stream_checks.py",
    "STREAM.AUDIT": "acceptance/test_audits.py",
    "STREAM.VERIFY": "broker/assets/repair/test_chains.py",
    "STREAM.HEAD": "broker/assets/repair/test_chains.py",
    "STREAM.SCHEDULES": "broker/jsapi/test_waiting.py",
    "STREAM.RESCUE": "broker/jsapi/test_rescue.py",
    "CONSUMER.WAITING": "broker/jsapi/test_waiting.py",
}
"""Requests that only the broker knows -> the test that sends them."""
NATS_SERVER = """
INFO STREAM.CREATE STREAM.UPDATE STREAM.NAMES STREAM.LIST STREAM.INFO STREAM.DELETE STREAM.PURGE
STREAM.SNAPSHOT STREAM.RESTORE STREAM.MSG.DELETE STREAM.MSG.GET DIRECT.GET CONSUMER.CREATE
CONSUMER.DURABLE.CREATE CONSUMER.NAMES CONSUMER.LIST CONSUMER.INFO CONSUMER.DELETE CONSUMER.PAUSE
CONSUMER.MSG.NEXT CONSUMER.RESET CONSUMER.UNPIN STREAM.PEER.REMOVE STREAM.PEER.EVACUATE
STREAM.CANCEL_MOVE STREAM.LEADER.STEPDOWN CONSUMER.LEADER.STEPDOWN CONSUMER.PEER.REMOVE
CONSUMER.PEER.EVACUATE META.LEADER.STEPDOWN SERVER.REMOVE SERVER.EVACUATE META.RESCUE ACCOUNT.PURGE
ACCOUNT.STREAM.MOVE ACCOUNT.STREAM.CANCEL_MOVE
"""
"""What follows `$JS.API.` in all subjects that nats-server 2.15.1 answers."""


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    """Both servers."""
    with running() as both:
        yield both


@pytest.mark.parametrize("name", sorted(CASES.keys() - set(ABOUT_MESSAGES)))
def test_answers_are_the_same(twins: Twins, name: str) -> None:
    assert not differing(twins, name, SEEDS)


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_what_was_found_once(twins: Twins, name: str, seed: int) -> None:
    assert not played(twins, seed, CASES[name])


def test_every_request_is_covered() -> None:
    """By a case that is drawn for both servers, or by a test of the broker's own requests."""
    assert {words for _, words, _ in ROUTES} == {*DRAWN, *OURS}
    assert set(NATS_SERVER.split()) == set(DRAWN)
    assert {*DRAWN.values(), *ABOUT_ALL, *ABOUT_MESSAGES} == set(CASES)


@pytest.mark.parametrize("words", sorted(OURS))
def test_the_brokers_own_are_tested(words: str) -> None:
    text = (Path(__file__).parents[1] / OURS[words]).read_text()
    assert words in text
