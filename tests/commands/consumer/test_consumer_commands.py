"""`jsctl consumer` and `jsctl jsm` against real servers."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.commands.conftest import Result
from tests.support.waiting import wait_for

Run = Callable[..., Result]


@pytest.fixture
def orders(run: Run, publish: Callable[..., None]) -> None:
    words = ("--subjects", "orders.*", "--replicas", "3", "--defaults")
    assert run("stream", "add", "ORDERS", *words).code == 0
    for number in range(4):
        publish(f"orders.{number}", f"m{number}".encode(), {"A": "b"})


def add(run: Run, name: str, *more: str) -> Result:
    result = run("consumer", "add", "ORDERS", name, "--defaults", *more)
    assert result.code == 0, result.err
    return result


def config(run: Run, name: str) -> Any:
    return json.loads(run("consumer", "info", "ORDERS", name, "-j").out)["config"]


@pytest.mark.usefixtures("orders")
def test_add_shows_the_consumer(run: Run) -> None:
    result = add(run, "PULL", "--pull")
    assert result.out.startswith("Information for Consumer ORDERS > PULL created ")
    assert "               Pull Mode: true\n" in result.out
    assert "Paused" not in result.out
    push = add(run, "PUSH", "--target", "to.me", "--deliver-group", "g", "--ack", "explicit")
    assert "        Delivery Subject: to.me\n" in push.out
    assert "         Active Interest: No interest\n" in push.out


@pytest.mark.usefixtures("orders")
def test_every_flag_of_add_reaches_the_server(run: Run) -> None:
    add(
        run,
        "C",
        "--pull",
        *("--filter", "orders.1,orders.2", "--max-pending", "5", "--sample", "10"),
        *("--wait", "10s", "--max-pull-batch", "10", "--max-pull-expire", "1m"),
        *("--inactive-threshold", "1h", "--headers-only", "--memory", "--replicas", "1"),
        *("--deliver", "last", "--backoff", "linear", "--backoff-steps", "3"),
        *("--backoff-min", "1s", "--backoff-max", "3s", "--metadata", "a:b"),
    )
    found = config(run, "C")
    assert found["filter_subjects"] == ["orders.1", "orders.2"]
    assert (found["max_ack_pending"], found["sample_freq"]) == (5, "10")
    assert (found["max_batch"], found["max_expires"]) == (10, 60 * 10**9)
    assert found["inactive_threshold"] == 3600 * 10**9
    assert (found["headers_only"], found["mem_storage"]) == (True, True)
    assert (found["num_replicas"], found["deliver_policy"]) == (1, "last")
    assert found["backoff"] == [10**9, 1_667_000_000, 2_333_000_000], "as `nats` has it"
    assert found["max_deliver"] == 4
    assert found["metadata"]["a"] == "b"


@pytest.mark.usefixtures("orders")
def test_ls_and_report(run: Run) -> None:
    assert run("consumer", "ls", "ORDERS").out == "No Consumers defined\n"
    add(run, "B", "--pull")
    add(run, "A", "--pull")
    assert json.loads(run("consumer", "ls", "ORDERS", "-j").out) == ["A", "B"]
    assert run("consumer", "ls", "ORDERS", "-n").out == "A\nB\n"
    assert "│           0 │           4 │ never         │" in run("consumer", "ls", "ORDERS").out
    report = run("consumer", "report", "ORDERS").out
    assert "Consumer report for ORDERS with 2 consumers" in report
    assert "│ 4 / 100%    │" in report
    rows = json.loads(run("consumer", "report", "ORDERS", "-o", "json").out)
    assert [(row["name"], row["num_pending"]) for row in rows] == [("A", 4), ("B", 4)]


@pytest.mark.usefixtures("orders")
def test_next_fetches_and_acknowledges(run: Run) -> None:
    add(run, "N", "--pull")
    first = run("consumer", "next", "ORDERS", "N").out.splitlines()
    assert first[0].endswith("] subj: orders.0 / tries: 1 / cons seq: 1 / str seq: 1 / pending: 3")
    assert first[1:] == [
        "",
        "Headers:",
        "",
        "  A: b",
        "",
        "Data:",
        "",
        "",
        "m0",
        "",
        "Acknowledged message",
        "",
    ]
    assert run("consumer", "next", "ORDERS", "N", "--raw", "--count", "2").out == "m1\nm2\n"
    assert "Terminated message" in run("consumer", "next", "ORDERS", "N", "--term").out
    late = run("consumer", "next", "ORDERS", "N", "--timeout", "1s")
    assert late.err == "jsctl: error: no message received: nats: timeout\n"
    assert "Consumer sequence: 4" in run("consumer", "state", "ORDERS", "N").out


@pytest.mark.usefixtures("orders")
def test_pause_edit_copy_and_remove(run: Run) -> None:
    add(run, "P", "--pull")
    assert run("consumer", "pause", "ORDERS", "P", "1h", "-f").out.startswith(
        "Paused ORDERS > P until "
    )
    # nats-server answers before it is so.
    wait_for(lambda: "pause_until" in config(run, "P"), "the pause")
    resumed = run("consumer", "resume", "ORDERS", "P", "-f").out
    assert resumed.startswith("Consumer ORDERS > P was resumed while previously paused until ")
    edited = run("consumer", "edit", "ORDERS", "P", "--description", "d", "-f")
    assert '+ description: "d"' in edited.out
    assert config(run, "P")["description"] == "d"
    document = run("consumer", "edit", "ORDERS", "P", "--description", "e", "-f", "-j").out
    assert json.loads(document)["config"]["description"] == "e"
    assert run("consumer", "copy", "ORDERS", "P", "Q").code == 0
    assert config(run, "Q")["durable_name"] == "Q"
    assert run("consumer", "rm", "ORDERS", "P", "-f").out == ""
    assert run("consumer", "rm", "ORDERS", "P", "-f").err == (
        'jsctl: error: consumer "ORDERS > P": consumer not found (10014)\n'
    )


@pytest.mark.usefixtures("orders")
def test_add_changes_a_consumer_that_is_there(run: Run) -> None:
    add = ("consumer", "add", "ORDERS", "P", "--pull", "--defaults")
    assert run(*add).code == 0
    done = run(*add, "--max-pending", "17", "--filter", "orders.x")
    assert done.code == 0, done.err
    assert "Max Ack Pending: 17\n" in done.out
    assert config(run, "P")["filter_subject"] == "orders.x"
    refused = run(*add, "--deliver", "new")
    assert refused.code == 1
    assert refused.err == (
        "jsctl: error: Consumer creation failed: deliver policy can not be updated (10012)\n"
    )


@pytest.mark.usefixtures("orders")
def test_errors_name_the_reason(run: Run) -> None:
    for words, message in (
        (("consumer", "add", "ORDERS"), "could not request durable name: "),
        (("consumer", "add", "ORDERS", "X"), "could not request delivery target: "),
        (("consumer", "add", "ORDERS", "X", "--pull", "--bps", "5", "--defaults"), "rate limits"),
        (("consumer", "info", "ORDERS"), "could not select Consumer: "),
        (("consumer", "info", "NOPE", "X"), 'stream "NOPE": stream not found (10059)\n'),
        (("consumer", "info", "ORDERS", "X"), 'consumer "ORDERS > X": consumer not found (10014)'),
        (
            ("consumer", "next", "ORDERS", "X"),
            'could not load consumer "X": consumer not found (10014)\n',
        ),
        (
            ("consumer", "next", "NOPE", "X"),
            'could not load consumer "X": stream not found (10059)\n',
        ),
    ):
        result = run(*words)
        assert result.code == 1
        assert result.err.startswith(f"jsctl: error: {message}"), result.err


@pytest.mark.usefixtures("orders")
def test_the_words_of_the_preview(run: Run) -> None:
    assert "Account Usage" in run("jsm", "info").out
    assert "Information for Stream ORDERS" in run("jsm", "info", "ORDERS").out
    assert run("jsm", "ls", "-n").out == "ORDERS\n"
    assert run("jsm", "add-obs", "ORDERS", "O", "--pull", "--defaults").code == 0
    assert run("jsm", "ls-obs", "ORDERS", "-n").out == "O\n"
    assert "ORDERS > O" in run("jsm", "info-obs", "ORDERS", "O").out
    assert run("jsm", "next", "ORDERS", "O", "--raw").out == "m0\n"
    assert run("jsm", "rm-msg", "ORDERS", "2", "-f").code == 0
    assert run("jsm", "purge", "ORDERS", "-f").out.startswith("Purged 3 messages")
    assert run("jsm", "rm-obs", "ORDERS", "O", "-f").code == 0
    assert run("jsm", "obs", "ls", "ORDERS").out == "No Consumers defined\n"
    assert run("jsm", "rm", "ORDERS", "-f").code == 0


def test_names_spelled_alike_are_offered(run: Run) -> None:
    run("stream", "add", "ORDERS", "--subjects", "o", "--defaults")
    run("consumer", "add", "ORDERS", "BILLING", "--pull", "--defaults")
    for words, near in (
        (("stream", "info", "ORDER"), "ORDERS"),
        (("stream", "info", "orders"), "ORDERS"),
        (("consumer", "info", "ORDERS", "BILING"), "BILLING"),
        (("consumer", "state", "ORDERS", "billing"), "BILLING"),
    ):
        result = run(*words, "-o", "json")
        problem = json.loads(result.err)["error"]
        assert problem["hint"] == f"did you mean {near}?"
        assert problem["class"] == "not_found"
    assert json.loads(run("stream", "info", "X", "-o", "json").err)["error"]["hint"] == ""
