"""Subjects, headers, keys and names that others have chosen move no cursor of who looks at them."""

import io
import json
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator

import pytest

from jsctl.commands.toolkit.invocation.output import Output
from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.testing import Broker
from tests.commands.conftest import Run
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes
ESCAPE = "\x1b[2J\u202e\x9b"
SHOWN = "\\x1b[2J\\u202e\\x9b"
HEADERS = f"NATS/1.0\r\nK{ESCAPE}: V{ESCAPE}\r\n\r\n".encode()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """With a message, a key and an object of somebody who means no good."""
    with Broker(jetstream=True) as running:
        client = WireClient(running.url)
        for name, subjects in (("S", "raw.>"), ("KV_B", "$KV.B.>"), ("OBJ_O", "$O.O.>")):
            config: dict[str, object] = {"name": name, "subjects": [subjects], "storage": "memory"}
            config |= {"allow_direct": True, "allow_rollup_hdrs": True}
            config |= {"max_msgs_per_subject": 5} if name == "KV_B" else {}
            answer = client.request(
                f"$JS.API.STREAM.CREATE.{name}".encode(), json.dumps(config).encode()
            )
            assert b'"error"' not in answer
        client.publish(f"raw.{ESCAPE}".encode(), b"body", headers=HEADERS)
        client.publish(f"$KV.B.{ESCAPE}".encode(), b"value")
        place = urlsafe_b64encode(ESCAPE.encode())
        about = {"name": ESCAPE, "bucket": "O", "nuid": "N", "size": 0, "chunks": 0}
        client.publish(b"$O.O.M." + place, json.dumps(about).encode())
        client.flush()
        yield running
        client.close()


@pytest.mark.parametrize(
    "line",
    [
        "stream get S 1",
        "stream view S",
        "sub --stream S --terminate-at-end",
        "sub raw.> --all --terminate-at-end",
        "sub --stream S --direct --terminate-at-end",
        "sub --stream S --terminate-at-end --subjects-only",
        "consumer next S C",
    ],
)
def test_messages_are_shown_without_moving_the_cursor(
    line: str, broker: Broker, cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    always = property(lambda _: True, lambda _, _value: None)
    monkeypatch.setattr(Prompts, "possible", always, raising=False)
    at = ("--server", broker.url)
    if line.startswith("consumer"):
        assert cli(*at, "consumer", "add", "S", "C", "--pull", "--defaults").code == 0
    found = cli(*at, *line.split(" "))
    assert SHOWN in found.out, found
    assert not {"\x1b", "\u202e", "\x9b"} & set(found.out), found.out


def test_keys_are_watched_without_moving_the_cursor(broker: Broker) -> None:
    command = [sys.executable, "-m", "jsctl", "--server", broker.url, "kv", "watch", "B"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        line = watching.stdout.readline()
        watching.terminate()
    assert f"PUT B > {SHOWN}: value" in line


@pytest.mark.parametrize(
    "line", ["kv ls B", "object ls O -n", "stream subjects S --names", "sub --stream S -o json"]
)
def test_programs_are_given_names_as_they_are(line: str, broker: Broker, cli: Run) -> None:
    if line.startswith("sub"):
        line += " --terminate-at-end"
    found = cli("--server", broker.url, *line.split(" "))
    text = json.loads(found.out)["Subject"] if line.startswith("sub") else found.out
    assert ESCAPE in text, found


def test_people_are_given_names_that_move_no_cursor() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    Output(terminal, io.StringIO()).names([ESCAPE, "plain"])
    assert terminal.getvalue() == f"{SHOWN}\nplain\n"
