"""What is refused leaves no file and no folder behind."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.testing import Broker, BrokerFactory
from tests.commands.conftest import Result

pytestmark = pytest.mark.processes
Run = Callable[..., Result]
NOBODY = "--server nats://127.0.0.1:1"
REFUSED = (
    "server generate new --template cluster --defaults --set servers=0",
    "server generate new --template cluster --defaults --set servers=x",
    "server generate new --source nope.zip",
    "server generate file/x --template cluster --defaults",
    "auth operator backup OP new/x --key nofile",
    "auth user add V A --operator OP --defaults --credential file/x",
    "auth user add V A --operator OP --defaults --credential .",
    "auth user edit U A --operator OP --payload 7 --credential file/x",
    "auth user credential new.creds NOPE A --operator OP",
    "auth user credential file/x U A --operator OP",
    "auth account query NOPE new.jwt",
    "backup stream NOPE new/deep",
    "backup stream ST file/x",
    f"backup stream ST new {NOBODY}",
    f"account backup new -f {NOBODY}",
    "stream backup NOPE new",
    f"audit gather --output new.zip {NOBODY}",
    "audit gather --output new.zip",
    "audit analyze file --save new.json",
    "context add a/b",
    "context copy NOPE new",
    "object get O nope --output new",
    "stream graph NOPE --svg new.svg",
    f"stream report --dot new.dot {NOBODY}",
    "stream add S.2 --output new.json --subjects s2 --defaults",
    "consumer add ST C.2 --output new.json --pull --defaults",
    f"sub x --dump new/deep {NOBODY}",
    "sub --stream NOPE --dump new/deep",
    "sub --stream ST --durable NOPE.X --dump new",
    "sub --stream ST --start-sequence 1 --last --dump new",
    "sub x --dump file/x",
    f"sub x --backup new {NOBODY}",
    f"latency --server-b nats://127.0.0.1:1 --histogram new {NOBODY}",
    "top NOPE --output new",
    "cheat --save file/x",
    "plugins register new nofile",
    "server check stream --stream NOPE --outfile file/x --format json",
    "bench pub a..b --msgs 1 --csv new.csv",
    f"bench pub x --msgs 1 --csv new.csv {NOBODY}",
    "stream verify NOPE --save new.json",
)


@pytest.fixture(scope="module")
def broker(jsctl_session_broker: BrokerFactory) -> Broker:
    return jsctl_session_broker("-js")


@pytest.fixture
def home(
    cli: Run, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, bytes]:
    """What there is before: an operator with an account and a user, and what the lines name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("NATS_URL", broker.url)
    monkeypatch.setenv("NATS_TIMEOUT", "2s")
    (tmp_path / "file").write_text("words")
    for line in (
        "auth operator add OP",
        "auth account add A --operator OP --defaults",
        "auth user add U A --operator OP --defaults",
        "stream add ST --subjects st --defaults",
        "object add O",
    ):
        done = cli(*line.split(" "))
        assert done.code == 0 or "already" in done.err, done
    return contents(tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    """Of all files and folders."""
    return {
        os.fspath(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def test_what_is_refused_leaves_everything_as_it_was(
    cli: Run, home: dict[str, bytes], tmp_path: Path
) -> None:
    for line in REFUSED:
        done = cli(*shlex.split(line))
        assert done.code != 0, line
        assert contents(tmp_path) == home, (line, done.err)
