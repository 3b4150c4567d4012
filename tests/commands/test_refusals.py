"""What a server refuses ends the command with status 1 and one line, on both servers."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.testing import Broker, RealServer
from tests.commands.conftest import KINDS, Run
from tests.support.waiting import wait_for

MAX_PAYLOAD = 100_000
CONFIG = """
max_payload: 100000
max_subs: 8
accounts {
  APP {
    jetstream: enabled
    users: [
      {user: app, password: app}
      {user: half, password: half, permissions: {
        publish: {deny: ["no.>", "$JS.API.STREAM.DELETE.>", "$JS.API.CONSUMER.MSG.NEXT.>",
                         "$JS.ACK.>"]}
        subscribe: {deny: ["no.>"]}}}
      {user: few, password: few, permissions: {publish: ["foo"], subscribe: ["foo"]}}
    ]
  }
  SYS { users: [ {user: sys, password: sys}
    {user: blind, password: blind, permissions: {publish: {deny: ["$SYS.REQ.SERVER.>"]}}} ] }
}
system_account: SYS
"""
pytestmark = pytest.mark.processes
PUBLISH = 'nats: permissions violation: Permissions Violation for Publish to "{}"'
LISTEN = 'nats: permissions violation: Permissions Violation for Subscription to "{}"'


@pytest.fixture(scope="module", params=list(KINDS))
def guarded(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A server with users who may not do everything, and a stream S with a consumer C."""
    with KINDS[str(request.param)]("-js", config=CONFIG) as running:
        yield running


@pytest.fixture
def as_user(guarded: Broker, cli: Run) -> Run:
    """Runs a command line as a user whose password is the name."""

    def run(user: str, *words: str) -> object:
        return cli("-s", guarded.url, "--user", user, "--password", user, *words)

    return run  # type: ignore[return-value] # the same result


REFUSED = [
    (("half", "pub", "no.a", "x"), PUBLISH.format("no.a")),
    (("half", "pub", "no.a", "x", "-q"), PUBLISH.format("no.a")),
    (("half", "pub", "no.a", "x", "--count", "2"), PUBLISH.format("no.a")),
    (("half", "pub", "no.a", "x", "--count", "30"), PUBLISH.format("no.a")),
    (("half", "sub", "no.a"), LISTEN.format("no.a")),
    (("half", "sub", "ok", "no.>", "--queue", "Q"), LISTEN.format("no.>") + ' using queue "Q"'),
    (("half", "reply", "no.a", "x"), LISTEN.format("no.a") + ' using queue "NATS-RPLY-22"'),
    (("half", "bench", "sub", "no.a", "--clients", "3"), LISTEN.format("no.a")),
    (("half", "bench", "pub", "no.a", "--msgs", "100", "--clients", "2"), PUBLISH.format("no.a")),
    (("few", "stream", "ls"), PUBLISH.format("$JS.API.STREAM.LIST")),
    (("few", "server", "ping"), PUBLISH.format("$SYS.REQ.SERVER.PING")),
    (("blind", "server", "ls"), PUBLISH.format("$SYS.REQ.SERVER.PING")),
]


@pytest.mark.parametrize(("words", "line"), REFUSED, ids=lambda value: " ".join(value)[:40])
def test_a_refusal_ends_the_command(as_user: Run, words: tuple[str, ...], line: str) -> None:
    done = as_user(*words)
    assert done.code == 1
    if words[0] == "few":  # the inbox and the request are refused, whichever is told first
        assert done.err.startswith("jsctl: error: nats: permissions violation: ")
    elif words[1] == "bench":
        assert done.err.endswith(f"jsctl: error: {line}\n")
        assert "Unexpected" not in done.err
        assert not done.out
    else:
        assert (done.out, done.err) == ("", f"jsctl: error: {line}\n")


def test_refused_requests_end_at_once(as_user: Run) -> None:
    for words in (("req", "no.a", "x"), ("pub", "-J", "no.a", "x")):
        done = as_user("half", "--timeout", "60s", *words)
        assert done.code == 1
        assert done.err.endswith(f"jsctl: error: {PUBLISH.format('no.a')}\n")
    done = as_user("few", "--timeout", "60s", "req", "foo", "x")
    assert done.code == 1
    assert 'Permissions Violation for Subscription to "_INBOX.' in done.err


def test_refused_requests_of_jetstream(as_user: Run) -> None:
    stream = ("stream", "add", "S", "--subjects", "s.>", "--defaults")
    assert as_user("app", *stream).code == 0
    assert as_user("app", "consumer", "add", "S", "C", "--pull", "--defaults").code == 0
    assert as_user("app", "pub", "-J", "s.1", "x").code == 0
    patient = ("half", "--timeout", "60s")
    for words, subject in (
        (("stream", "rm", "S", "-f"), "$JS.API.STREAM.DELETE.S"),
        (("consumer", "next", "S", "C"), "$JS.API.CONSUMER.MSG.NEXT.S.C"),
        (("sub", "--stream", "S", "--durable", "C"), "$JS.API.CONSUMER.MSG.NEXT.S.C"),
    ):
        done = as_user(*patient, *words)
        assert done.code == 1
        assert done.err.endswith(f"jsctl: error: {PUBLISH.format(subject)}\n")
    # Nothing of it waits for an acknowledgement, and so none is sent.
    done = as_user(*patient, "sub", "s.>", "--all", "--ack", "--count", "1")
    assert done.code == 0, done.err
    assert as_user("app", "stream", "info", "S").code == 0


def test_what_may_be_missing_is_not_the_end(as_user: Run) -> None:
    done = as_user("few", "account", "info")
    assert done.code == 0
    assert "Could not obtain account information: nats: permissions violation: " in done.out


def test_too_much_is_refused(as_user: Run, tmp_path: Path) -> None:
    body = "x" * (MAX_PAYLOAD - 5)
    assert as_user("app", "pub", "foo", body).code == 0
    for more in ("yyyyyyy", ""):
        header = () if more else ("-H", "a:b")
        done = as_user("app", "pub", "foo", body + more, *header)
        assert done.code == 1
        assert done.err == "jsctl: error: nats: maximum payload exceeded\n"
    done = as_user("app", "sub", *(f"foo.{number}" for number in range(12)))
    assert done.code == 1
    assert done.err == "jsctl: error: nats: server maximum subscriptions exceeded\n"


def test_a_wrong_password_is_what_is_said(guarded: Broker, cli: Run) -> None:
    for words in (("server", "ls"), ("server", "info"), ("pub", "a", "x"), ("server", "ping")):
        done = cli("-s", guarded.url, "--user", "app", "--password", "wrong", *words)
        error, hint = done.err.splitlines()
        assert (done.code, error) == (1, "jsctl: error: nats: Authorization Violation")
        assert hint == "  the server does not know these credentials"


def test_a_user_who_is_removed_is_not_waited_for(cli: Run) -> None:
    users = "authorization { users: [%s {user: b, password: b}] }"
    with RealServer(config=users % "{user: a, password: a},") as broker:

        def subscribed() -> bool:
            found = broker.monitor("/subsz?subs=1&test=foo")
            return isinstance(found, dict) and found.get("total") == 1

        def remove() -> None:
            wait_for(subscribed, "somebody listens")
            (broker.directory / "broker.conf").write_text(users % "")
            broker.signal(signal.SIGHUP)

        helper = threading.Thread(target=remove)
        helper.start()
        done = cli("-s", broker.url, "--user", "a", "--password", "a", "sub", "foo")
        helper.join()
    assert done.code == 1
    assert "jsctl: error: nats: Authorization Violation\n" in done.err
