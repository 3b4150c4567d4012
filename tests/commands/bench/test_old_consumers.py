"""`jsctl bench oldjs` against both kinds of server."""

import json
from collections.abc import Callable

import pytest

from tests.commands.conftest import Result

Run = Callable[..., Result]
ENABLED = ["nats-server", "jsctl"]
pytestmark = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package")
COUNT = 300


def total(result: Result) -> int:
    assert result.code == 0, result.err
    found = json.loads(result.out)["total"]["messages"]
    assert isinstance(found, int)
    return found


def test_what_is_pushed_and_fetched(run: Run) -> None:
    stream = ("--stream", "OLD", "--msgs", str(COUNT))
    words = ("bench", "js", "pub", "async", "old", *stream, "--create", "--multisubject")
    assert run(*words).code == 0
    json_out = (*stream, "-o", "json")
    assert total(run("bench", "oldjs", "ordered", "old", "--multisubject", *json_out)) == COUNT
    both = ("--clients", "2")
    each = run("bench", "oldjs", "ordered", "old", "--multisubject", *json_out, *both)
    assert total(each) == 2 * COUNT
    for kind in ("push", "pull"):
        for more in ((), both, ("--no-ack",), ("--doubleack",)):
            result = run("bench", "oldjs", kind, "old.*", *json_out, *more)
            assert total(result) == COUNT, (kind, more)
            assert "Deleted durable consumer: nats-bench" in result.err
    assert run("consumer", "ls", "OLD", "-n").out.split() == []
    kept = run("consumer", "add", "OLD", "KEPT", "--pull", "--defaults")
    assert kept.code == 0
    assert total(run("bench", "oldjs", "pull", "old.*", "--consumer", "KEPT", *json_out)) == COUNT
    assert run("consumer", "ls", "OLD", "-n").out.split() == ["KEPT"]


def test_each_double_acknowledgement_is_waited_for(run: Run) -> None:
    """What is not acknowledged is not delivered: with one message at a time all of them come."""
    words = ("--stream", "ONE", "--msgs", "40")
    assert run("bench", "js", "pub", "async", "one", *words, "--create").code == 0
    slowly = ("--maxacks", "1", "--doubleack", "-o", "json")
    assert total(run("bench", "oldjs", "push", "one", *words, *slowly)) == 40


def test_who_is_sent_more_than_his_share_gives_it_back(run: Run) -> None:
    """The first client listens before the second one does; the server would wait for an hour."""
    words = ("--stream", "SHARED", "--msgs", str(COUNT))
    assert run("bench", "js", "pub", "async", "shared", *words, "--create").code == 0
    patient = ("--target", "out", "--deliver-group", "all", "--ack", "explicit", "--wait", "1h")
    assert run("consumer", "add", "SHARED", "PATIENT", *patient, "--defaults").code == 0
    two = ("--consumer", "PATIENT", "--clients", "2", "-o", "json")
    assert total(run("bench", "oldjs", "push", "shared", *words, *two)) == COUNT
    state = json.loads(run("consumer", "info", "SHARED", "PATIENT", "-j").out)
    assert (state["num_pending"], state["num_ack_pending"]) == (0, 0)


def test_what_is_not_there(run: Run) -> None:
    none = run("bench", "oldjs", "ordered", "nobody.listens", "--msgs", "5")
    assert none.code == 1
    assert none.err.endswith("nats: no stream matches subject\n")
    for kind in ("push", "pull"):
        missing = run("bench", "oldjs", kind, "x", "--stream", "NOPE", "--msgs", "5")
        assert missing.code == 1
        assert "creating the durable consumer 'nats-bench'" in missing.err
