"""Unusual values: refused before anything is changed, or meant as they stand."""

import json
from collections.abc import Callable

import pytest

from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server

Run = Callable[..., Result]
REFUSED = (
    (("stream", "add", "a b", "--subjects", "x", "--defaults"), 'Stream: "a b" is not a valid'),
    (("stream", "add", "a\tb", "--subjects", "x", "--defaults"), '"a\\tb" is not a valid'),
    (("stream", "add", "X", "--subjects", " ", "--defaults"), "nothing but spaces"),
    (("stream", "add", "X", "--subjects", "", "--defaults"), "invalid subject (10052)"),
    (("stream", "add", "X", "--subjects", "x", "--max-age=-2s", "--defaults"), "not negative"),
    (("stream", "add", "X", "--subjects", "x", "--max-msg-size", "5G", "--defaults"), "too big"),
    (("stream", "edit", "S", "--subjects", "", "-f"), "invalid subject (10052)"),
    (("stream", "get", "S", "0"), "could not retrieve S#0"),
    (("consumer", "add", "S", "a.b", "--pull", "--defaults"), "can not contain '.', '*', '>'"),
    (("consumer", "add", "S", "a b", "--pull", "--defaults"), "creation failed: "),
    (("consumer", "next", "S", "C", "--term", "--nak"), "Acknowledge and Terminate"),
    (("consumer", "next", "S", "a.b"), 'could not request next message: "a.b" is not a valid'),
    (("stream", "ls", "--timeout", ""), "--timeout: expected a duration"),
    (("object", "put", "B", ""), "path '' does not exist"),
    (("service", "serve", "svc", "--header", "bogus"), "--header: expected"),
)


@pytest.fixture
def stream(run: Run) -> Run:
    """With one stream and one consumer."""
    assert run("stream", "add", "S", "--subjects", "s.>", "--defaults").code == 0
    assert run("consumer", "add", "S", "C", "--pull", "--defaults").code == 0
    return run


def config(result: Result) -> dict[str, object]:
    assert result.code == 0, result.err
    found = json.loads(result.out)["config"]
    assert isinstance(found, dict)
    return found


def test_what_cannot_be_is_refused_and_changes_nothing(stream: Run) -> None:
    before = config(stream("stream", "info", "S", "-j"))
    for words, reason in REFUSED:
        refused = stream(*words)
        assert (refused.code, reason in refused.err) == (1, True), (words, refused)
        assert "Traceback" not in refused.err
    assert config(stream("stream", "info", "S", "-j")) == before
    assert stream("stream", "ls", "-n").out.split() == ["S"]


def test_what_is_meant_as_it_stands(stream: Run) -> None:
    words = ("--subjects", "x", "--replicas", "0", "--tag", "a b", "--defaults", "-j")
    tagged = stream("stream", "add", "X", *words)
    assert tagged.code == 1  # no server has such a tag
    assert "a b" in tagged.err or "no suitable peers" in tagged.err
    made = config(stream("stream", "add", "X", *words[:4], *words[6:]))
    assert made["num_replicas"] == 1
    for start, policy in (("next", "new"), ("last_per_subject", "last_per_subject")):
        added = config(
            stream("consumer", "add", "S", policy, "--pull", "--deliver", start, "--defaults", "-j")
        )
        assert added["deliver_policy"] == policy
        assert added.get("filter_subject", "") == (">" if "last" in policy else "")
    copied = config(stream("consumer", "copy", "S", "C", "D", "--pull", "--target", "x", "-j"))
    assert "deliver_subject" not in copied
    assert stream("consumer", "next", "S", "C", "--count", "0") == Result(0, "", "")
    sealed = [stream("stream", "seal", "X", "-f", "-j") for _ in range(2)]
    assert [config(one)["sealed"] for one in sealed] == [True, True]


def test_requests_end_where_nobody_listens(run: Run) -> None:
    asked = run("request", "nobody.listens", "x", "--count", "3")
    assert asked.code == 0
    assert asked.err.count("No responders are available") == 1


def test_what_a_server_objects_to_is_told(run: Run) -> None:
    system = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    refused = run(*system, "server", "report", "connections", "--subject", "x")
    assert refused.code == 1
    assert "filter by subject only valid with account filtering" in refused.err


def test_only_sizes_are_shown_of_bodies_that_nobody_wants(stream: Run) -> None:
    assert stream("pub", "s.1", "hello", "-J", "-q").code == 0
    for flag in ("--headers-only", "--subjects-only"):
        shown = stream("sub", "s.>", "--all", "--terminate-at-end", flag)
        assert shown.code == 0, shown.err
        assert "hello" not in shown.out
        assert ("Nats-Msg-Size: 5" in shown.out) is (flag == "--headers-only")


@pytest.mark.parametrize("url", ["nats://nobody.invalid:4222", "nobody.invalid"])
def test_a_name_that_nobody_has_is_told(cli: Run, url: str) -> None:
    lost = cli("stream", "ls", "--server", url)
    reason = "setup failed: dial tcp: lookup nobody.invalid: no such host"
    assert (lost.code, lost.err) == (1, f"jsctl: error: {reason}\n")


@pytest.mark.parametrize(
    "words",
    [
        ("stream", "info", "xö\udcff1"),
        ("consumer", "ls", "xö\udcff1"),
        ("kv", "get", "xö\udcff1", "k"),
        ("object", "info", "B", "xö\udcff1"),
        ("pub", "xö\udcff1", "hello"),
        ("bench", "pub", "xö\udcff1", "--msgs", "1"),
        ("server", "check", "stream", "--stream", "xö\udcff1"),
    ],
)
def test_bytes_that_are_no_text_are_told_where_one_is_needed(
    run: Run, words: tuple[str, ...]
) -> None:
    assert run("object", "add", "B").code == 0
    refused = run(*words)
    assert refused.code in (1, 2), refused
    assert "Traceback" not in refused.err


def test_a_message_that_no_server_takes_takes_no_memory(run: Run, server: Server) -> None:
    words = ("--server-b", server.url, "--duration", "1s", "--rate", "1", "--size", str(2**62))
    refused = run("latency", *words)
    assert (refused.code, "maximum payload exceeded" in refused.err) == (1, True), refused
