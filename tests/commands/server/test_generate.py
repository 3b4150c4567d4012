"""`jsctl server generate`: what it writes, a real server runs with."""

import os
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.settings import Context, ContextStore
from tests.commands.conftest import Result
from tests.support.dialogues import Step, talked
from tests.support.interrupted import until
from tests.support.nats_process import real_server
from tests.support.real_cli import nats, needs_nats

Run = Callable[..., Result]
END_S = 60
pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def own_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def does(cli: Run, line: str) -> str:
    done = cli(*shlex.split(line))
    assert done.code == 0, (line, done.err)
    return done.out


def test_a_real_server_of_our_operator_takes_our_accounts(cli: Run, tmp_path: Path) -> None:
    """Keys, JWTs, credentials, `nsc://` and the resolver, all against the real thing."""
    does(cli, "auth operator add OP")
    does(cli, "auth account add APP --jetstream --js-disk 1G --js-memory 1M --defaults")
    does(cli, "auth account keys add APP reader --sub-allow 'ok' --sub-allow '_INBOX.>'")
    does(cli, "auth user add bob APP --defaults")
    does(cli, "auth user add ann APP --key reader --defaults")
    does(cli, "auth user add admin SYSTEM --defaults")
    target = tmp_path / "made"
    folders = f"--set store_dir={tmp_path}/js --set resolver_dir={tmp_path}/jwt"
    words = f"server generate {target} --template operator --defaults {folders}"
    made = cli(*shlex.split(f"{words} --set address=127.0.0.1"))
    assert (made.code, f" Created {target}/server.conf\n" in made.err) == (0, True)
    assert (target / "server.conf").stat().st_mode & 0o777 == 0o600
    flags = ("-c", target / "server.conf", "-m", "-1")
    with real_server(tmp_path, *flags, configured=True) as url:
        system = f"-s {url} --creds nsc://OP/SYSTEM/admin"
        assert "Success 1 Failed 0 Expected 1" in does(cli, f"auth account push APP {system}")
        assert "JetStream: true" in does(cli, f"auth account query APP {system}")
        user = f"-s {url} --creds nsc://OP/APP/bob"
        does(cli, f"{user} stream add A --subjects a --defaults")
        assert does(cli, f"{user} stream ls -n") == "A\n"
        does(cli, f"auth user credential {tmp_path}/ann.creds ann APP")
        denied = cli(*shlex.split(f"-s {url} --creds {tmp_path}/ann.creds sub a --count 1"))
        assert (denied.code, "ermissions" in denied.err) == (1, True)
        store = ContextStore.default({"XDG_CONFIG_HOME": str(tmp_path / "config")})
        store.save("c", Context(url=url, creds="nsc://OP/APP/bob"))
        assert does(cli, "--context c stream ls -n") == "A\n"
        does(cli, f"auth user credential {tmp_path}/bob.creds bob APP")
        does(cli, "auth user rm bob APP -f --revoke")
        does(cli, f"auth account push APP {system}")
        revoked = cli(*shlex.split(f"-s {url} --creds {tmp_path}/bob.creds stream ls"))
        assert (revoked.code, "uthorization" in revoked.err) == (1, True)


@needs_nats
def test_the_real_tool_uses_our_store_and_server(cli: Run, tmp_path: Path) -> None:
    does(cli, "auth operator add OP")
    does(cli, "auth user add admin SYSTEM --defaults")
    does(cli, f"auth user credential {tmp_path}/sys.creds admin SYSTEM")
    does(cli, "auth account add APP --defaults")
    target = tmp_path / "made"
    answers = f"--set streams=false --set resolver_dir={tmp_path}/jwt --set address=127.0.0.1"
    does(cli, f"server gen {target} --template operator --defaults {answers}")
    with real_server(tmp_path, "-c", target / "server.conf", "-m", "-1") as url:
        flags = ("-s", url, "--creds", str(tmp_path / "sys.creds"))
        assert nats(*flags, "auth", "account", "push", "APP").code == 0
        theirs, ours = (run(*flags, "auth", "account", "query", "APP").out for run in (nats, cli))
        assert theirs == ours


def test_a_cluster_is_written_with_its_secrets(cli: Run, tmp_path: Path) -> None:
    does(cli, f"server generate {tmp_path}/dev --template cluster --defaults --set servers=2")
    names = {path.name for path in (tmp_path / "dev").iterdir()}
    assert names == {"n1.conf", "n2.conf", "passwords.json"}
    assert {path.stat().st_mode & 0o77 for path in (tmp_path / "dev").iterdir()} == {0}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{here}", "already exist"),
        ("{here}/x", "cannot prompt for user input without a terminal"),
        ("{here}/x --source ftp://bundle", "http and https"),
        ("{here}/x --template operator --defaults", "no operator found"),
        ("{here}/x --template cluster --defaults --set port=0", "port: a port is a number"),
        ("{here}/x --template cluster --defaults --set port=x", "port: expected a whole number"),
        ("{here}/x --template cluster --defaults --set port=65534", "would be 67536"),
        ("{here}/x --template cluster --defaults --set servers=10", "a number from 1 to 9"),
        ("{here}/x --template cluster --defaults --set color=red", "there is no such question"),
        ("{here}/x --template other", "enum value must be one of"),
    ],
)
def test_what_cannot_be_made_is_told(cli: Run, tmp_path: Path, line: str, told: str) -> None:
    done = cli("server", "generate", *shlex.split(line.format(here=tmp_path)))
    assert (done.code, told in done.err) == (1, True)
    assert not (tmp_path / "x").exists()


TYPED: tuple[Step, ...] = (
    ("Unique name for this server (nats.example.net)", ""),
    ("Address to listen on (0.0.0.0)", "nowhere"),
    ("your reply was invalid", "127.0.0.1"),
    ("on for client connections (4222)", ""),
    ("on for monitoring requests (8222)", ""),
    ("Enables JetStream in the cluster (Y/n)", "n"),
    ("Directory to store JetStream data", ""),
    ("Maximum amount of RAM", ""),
    ("Maximum amount of disk", "1GB"),
    ("The directory to store JWTs in", ""),
    ("Should the server allow accounts to be deleted (Y/n)", "no"),
    ("The maximum amount of accounts to allow (1000)", "7"),
)


def test_questions_are_answered_on_a_terminal(cli: Run, tmp_path: Path) -> None:
    does(cli, "auth operator add OP")
    words = f"server generate {tmp_path}/made --template operator"
    assert talked([sys.executable, "-m", "jsctl"], tmp_path, words, TYPED) == 0
    text = (tmp_path / "made" / "server.conf").read_text()
    assert "jetstream {" not in text
    assert "allow_delete: false" in text
    assert "limit: 7" in text


def test_a_signal_ends_a_list(tmp_path: Path) -> None:
    """A key that interrupts is read by the list itself; this comes from elsewhere."""
    screen, terminal = os.openpty()
    words = [sys.executable, "-m", "jsctl", "server", "generate", f"{tmp_path}/made"]
    before = termios.tcgetattr(terminal)
    variables = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    with subprocess.Popen(
        words, stdin=terminal, stdout=terminal, stderr=terminal, env=variables
    ) as process:
        try:
            until(screen, b"Development cluster", 1)
            process.send_signal(signal.SIGINT)
            assert process.wait(END_S) == 1
            assert termios.tcgetattr(terminal)[3] == before[3], "it is given back"
        finally:
            process.kill()
    assert b"jsctl: error: interrupt" in until(screen, b"interrupt", 1)
