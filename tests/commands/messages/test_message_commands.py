"""`jsctl publish`, `subscribe`, `request` and `reply` against both kinds of server."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands.conftest import Result, Server
from tests.support.waiting import wait_for

Run = Callable[..., Result]
ENABLED = ["nats-server", "jsctl"]
pytestmark = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package")
DEADLINE_S = 60


class Background:
    """A command line in a process of its own."""

    def __init__(self, url: str, words: tuple[str, ...], until: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jsctl", "--server", url, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )
        assert self._process.stderr is not None
        self.head = ""
        while until not in self.head:
            line = self._process.stderr.readline()
            assert line, self.head
            self.head += line

    def line(self) -> str:
        """The next line that it prints; `result` does not have it then."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def result(self) -> Result:
        """What it printed, once it has ended by itself."""
        out, err = self._process.communicate(timeout=DEADLINE_S)
        return Result(self._process.returncode, out, self.head + err)

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return self._process.poll() is not None

    def signal(self, which: signal.Signals) -> None:
        """Sends it one."""
        self._process.send_signal(which)

    def interrupt(self) -> Result:
        """What it printed until Ctrl-C."""
        self.signal(signal.SIGINT)
        return self.result()

    def close(self) -> None:
        """Kills it if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def background(server: Server) -> Iterator[Callable[..., Background]]:
    started: list[Background] = []

    def start(*words: str, until: str) -> Background:
        started.append(Background(server.url, words, until))
        return started[-1]

    yield start
    for one in started:
        one.close()


Start = Callable[..., Background]


@pytest.fixture
def orders(run: Run) -> None:
    words = ("--subjects", "orders.*", "--replicas", "3", "--defaults")
    assert run("stream", "add", "ORDERS", *words).code == 0
    for number in range(1, 5):
        assert run("pub", "-J", "-q", f"orders.{number % 2}", f"m{number}").code == 0


def logged(result: Result) -> list[str]:
    """Log lines without their time of day."""
    return [line.partition(" ")[2] for line in result.err.splitlines()]


def test_publish_says_what_it_sent(run: Run) -> None:
    assert logged(run("pub", "foo", "hello")) == ['Published 5 bytes to "foo"']
    filled = run("publish", "foo", "{{.Count}} {{ Cnt }} {{Random 3 3}}", "--count", "2")
    assert logged(filled) == ['Published 7 bytes to "foo"'] * 2
    for text, why in (
        ("{{Count}} {{Unknown}}", ' function "Unknown" not defined'),
        ("{{Count}} {{Cnt", " unclosed action"),
        (
            "{{Random 5}}",
            '2: executing "body" at <Random>: wrong number of args for Random: want 2 got 1',
        ),
        ("{{ }}", " missing value for command"),
    ):
        assert logged(run("pub", "foo", text)) == [
            f"Could not parse body template: template: body:1:{why}",
            f'Published {len(text)} bytes to "foo"',
        ]
    assert run("pub", "-q", "foo", "x").err == ""
    assert logged(run("pub", "foo", "hi", "--count", "21")) == ["Published 21 messages, 42 bytes"]
    wrong = run("pub", "bad subject", "x")
    assert (wrong.code, wrong.err) == (1, "jsctl: error: nats: invalid subject\n")


@pytest.mark.usefixtures("orders")
def test_publish_to_a_stream(run: Run) -> None:
    result = run("pub", "-J", "orders.9", "x")
    assert logged(result)[1] == "Stored in Stream: ORDERS Sequence: 5"
    twice = [run("pub", "-J", "orders.9", "x", "-H", "Nats-Msg-Id:1") for _ in range(2)]
    assert logged(twice[1])[1] == "Stored in Stream: ORDERS Sequence: 6 Duplicate: true"
    refused = run("pub", "-J", "orders.9", "x", "-H", "Nats-Expected-Last-Sequence:99")
    assert refused.code == 1
    assert refused.err.endswith("jsctl: error: wrong last sequence: 6 (10071)\n")
    nobody = run("pub", "-J", "nobody", "x")
    *_, error, hint = nobody.err.splitlines()
    assert error == "jsctl: error: nats: no responders available for request"
    assert hint == "  no stream listens on nobody"


# With a generated inbox a subscription says that it is made, raw or not.
def test_publish_reads_stdin(run: Run, server: Server, background: Start) -> None:
    lines = background("sub", "in.>", "-ri", "--count", "3", until="Subscribing on in.>")
    for words in (("in.a", "--send-on", "newline"), ("in.b",)):
        program = [sys.executable, "-m", "jsctl", "-s", server.url, "pub", *words]
        subprocess.run(program, input=b"x\ny\n", check=True, capture_output=True)
    assert lines.result().out == "x\ny\nx\ny\n"


def test_an_atomic_batch_is_stored_whole(run: Run, server: Server) -> None:
    added = run("stream", "add", "B", "--subjects", "b", "--allow-batch", "--defaults")
    assert added.code == 0, added.err
    program = [sys.executable, "-m", "jsctl", "-s", server.url, "pub", "b", "--atomic"]
    lines = b"{{Count}} of {{.Count}}\n2\n3\n"
    done = subprocess.run(
        [*program, "--send-on", "newline"], input=lines, capture_output=True, check=False
    )
    assert b"Messages: 3 Sequence: 3" in done.stderr, done.stderr
    assert "1 of 1" in run("stream", "get", "B", "1").out
    assert run("pub", "b", "x", "--atomic").err.startswith("jsctl: error: atomic batch publishing ")


def test_request_and_reply(run: Run, background: Start) -> None:
    service = background("reply", "help", "ok {{Count}}: {{Request}}", "-H", "K:v", until="Listen")
    assert 'Listening on "help" in group "NATS-RPLY-22"' in service.head
    answer = run("request", "help", "hi")
    assert answer.out == "ok 0: hi\n\n\n"
    assert logged(answer)[0] == 'Sending request on "help"'
    assert logged(answer)[1].startswith("Received with rtt ")
    assert logged(answer)[2:] == ["K: v", ""]
    assert (
        run("req", "help", "a{{Count}}", "--count", "2", "--raw").out
        == "ok 1: a1\n\n\nok 2: a2\n\n\n"
    )
    assert run("req", "help", "x", "--replies", "0", "-r").out == "ok 3: x\n\n\n"
    ended = service.interrupt()
    assert ended.code == 0
    assert ended.out == "\nhi\n\na1\n\na2\n\nx\n"


def test_reply_with_echo_and_command(run: Run, background: Start) -> None:
    background("reply", "echo", "--echo", until="Listening")
    echoed = run("req", "echo", "same", "-H", "Q:z")
    assert (echoed.out, logged(echoed)[2:]) == (
        "same\n\n\n",
        ["NATS-Reply-Counter: 0", "Q: z", ""],
    )
    command = background("reply", "cmd.*", "--command", "echo {{1}}", "--count", "1", until="Lis")
    assert run("req", "cmd.a", "x").out == "a\n\n"
    assert command.result().code == 0
    without = background("reply", "x", "--count", "1", until="Listening")
    assert run("request", "x", "hear", "--raw").out.strip() == "hear"
    assert "No body or command supplied, enabling echo mode" in without.result().err


def test_request_without_responders(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("req", "nobody", "x")
    assert (result.code, logged(result)[1]) == (0, "No responders are available")
    monkeypatch.setenv("JSCTL_EXIT", "detailed")
    assert run("req", "nobody", "x").code == 5


def test_subscribe_shows_messages(run: Run, background: Start, tmp_path: Path) -> None:
    plain = background("sub", "f.>", "g", "--count", "3", until="Subscribing on f.>, g")
    raw = background("sub", "f.>", "-ri", "--count", "1", until="Subscribing")
    heads = background("sub", "f.>", "--headers-only", "-I", "f.b", "--count", "1", until="Ignored")
    names = background("sub", "f.>", "--subjects-only", "--count", "2", until="Subscribing")
    dumped = background("sub", "f.a", "-i", "--dump", str(tmp_path), "--count", "1", until="Sub")
    run("pub", "f.a", "one", "-H", "K:v", "--reply", "rr")
    run("pub", "f.b", "")
    run("pub", "g", "three")
    assert plain.result().out == (
        '[#1] Received on "f.a" with reply "rr"\nK: v\n\none\n\n\n'
        '[#2] Received on "f.b"\nnil body\n\n\n'
        '[#3] Received on "g"\nthree\n\n\n'
    )
    assert raw.result().out == "one\n"
    assert heads.result().out == '[#1] Received on "f.a" with reply "rr"\nK: v\n\n'
    assert names.result().out == (
        '[#1] Received on "f.a" with reply "rr"\n[#2] Received on "f.b"\n'
    )
    assert dumped.result().code == 0
    document = json.loads((tmp_path / "1.json").read_text())
    assert (document["Subject"], document["Header"], document["Data"]) == (
        "f.a",
        {"K": ["v"]},
        "b25l",
    )


def test_subscribe_ends_by_silence_and_by_hand(run: Run, background: Start) -> None:
    assert run("sub", "x", "--wait", "50ms").code == 0
    report = background("sub", "r.>", "--report-subjects", until="Subscribing")
    run("pub", "r.a", "12")
    run("pub", "r.a", "34")
    ended = report.interrupt()
    assert ended.code == 130
    assert "Top 10 Active Subjects Report" in ended.out
    missing = run("sub")
    assert missing.code == 1
    assert "No subjects or --stream flag provided." in missing.out


@pytest.mark.usefixtures("orders")
def test_subscribe_to_a_stream(run: Run) -> None:
    result = run("sub", "--stream", "ORDERS", "--all", "--count", "2")
    assert result.out.startswith(
        "[#1] Received JetStream message: stream: ORDERS seq: 1 / pending: 3 / subject: orders.1 /"
    )
    assert logged(result) == ["Subscribing to subject > from first received message "]
    assert run("sub", "orders.0", "--all", "-T", "-r").out == "m2\nm4\n"
    assert run("sub", "--stream", "ORDERS", "--last-per-subject", "-T", "-r").out == "m3\nm4\n"
    started = run("sub", "--stream", "ORDERS", "--start-sequence", "3", "-T", "-r", "--ack")
    assert started.out == "m3\nm4\n"
    assert run("sub", "--stream", "ORDERS", "--since", "1h", "--count", "1", "-r").out == "m1\n"
    assert run("sub", "--stream", "ORDERS", "--new", "--wait", "50ms", "-r").out == ""
    assert run("consumer", "ls", "ORDERS", "-n").out == ""
    assert run("sub", "--stream", "NOPE", "--all").err == (
        'jsctl: error: stream "NOPE": stream not found (10059)\n'
    )
    none = run("sub", "xyz", "--all")
    assert none.err == "jsctl: error: no stream found with subject: xyz\n"


@pytest.mark.usefixtures("orders")
def test_a_durable_goes_on_where_it_was(run: Run) -> None:
    words = ("sub", "--stream", "ORDERS", "--durable", "D", "-r", "--count")
    assert run(*words, "3").out == "m1\nm2\nm3\n"
    assert run(*words, "1").out == "m4\n"
    assert "Unprocessed Messages: 0" in run("consumer", "state", "ORDERS", "D").out


def test_the_last_message_of_a_subject_is_got_directly(run: Run) -> None:
    assert run("stream", "add", "S", "--subjects", "s.>", "--allow-direct", "--defaults").code == 0
    for at in (1, 2):
        assert run("pub", f"s.{at}", f"body {at}", "-J", "-q").code == 0
    words = ("sub", "--stream", "S", "--direct", "--last", "--count", "1", "--raw")
    assert [run(*words, *one).out for one in ((), ("s.1",), ("s.*",))] == [
        "body 2\n",
        "body 1\n",
        "body 2\n",
    ]


@pytest.mark.usefixtures("orders")
def test_a_durable_is_asked_for_no_more_than_it_allows(run: Run) -> None:
    """Larger requests were refused, and asked again without end."""
    limits = ("--max-pull-batch", "1", "--max-pull-expire", "2s")
    assert run("consumer", "add", "ORDERS", "D", "--pull", *limits, "--defaults").code == 0
    found = run("sub", "--stream", "ORDERS", "--durable", "D", "--count", "4", "--raw")
    assert (found.code, found.out) == (0, "m1\nm2\nm3\nm4\n")


@pytest.mark.usefixtures("orders")
def test_a_durable_that_is_removed_ends_its_subscription(run: Run, background: Start) -> None:
    assert run("consumer", "add", "ORDERS", "D", "--pull", "--defaults").code == 0
    asking = background("sub", "--stream", "ORDERS", "--durable", "D", until="Subscribing")

    def waits() -> bool:
        return "Waiting Pulls: 1 of" in run("consumer", "info", "ORDERS", "D").out

    wait_for(waits, "the request")
    assert run("consumer", "rm", "ORDERS", "D", "-f").code == 0
    ended = asking.result()
    assert (ended.code, "consumer not found" in ended.err) == (1, True), ended
    assert "Traceback" not in ended.err
