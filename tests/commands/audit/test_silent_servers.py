"""`audit gather` where a server that was there says nothing, or nothing to some requests."""

import asyncio
import json
import sys
from pathlib import Path
from time import monotonic

import nats
import pytest
from nats.aio.msg import Msg

from jsctl.commands.audit.silence import Silence
from jsctl.commands.toolkit.archives.files import Reader
from jsctl.testing import BrokerFactory
from tests.commands.conftest import KINDS

pytestmark = pytest.mark.processes
CONFIG = """
accounts {
    A { jetstream: enabled, users: [{ user: a, password: a }] }
    B { users: [{ user: b, password: b }] }
    SYS { users: [{ user: s, password: s }] }
}
system_account: SYS
"""
ACCOUNTS = {"accounts": ["A", "B", "SYS"]}
KNOWN = {"STATSZ", "VARZ", "EXPVARZ", "CONNZ", "GATEWAYZ", "LEAFZ", "SUBSZ", "JSZ", "ACCOUNTZ"}
KNOWN |= {"HEALTHZ", "RAFTZ", "IPQUEUESZ"}
ODD = "NODD"
WAIT_S = 2
WAITS_MAX = 15
"""Of a whole timeout. There are some thirty requests, to the server or for its accounts."""


class Odd:
    """A server that is found like others, and answers requests for itself of some kinds alone."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.asked: list[str] = []

    async def answer(self, message: Msg) -> None:
        """As a server would that listens to this subject."""
        _, _, _, who, *rest = message.subject.split(".")
        kind = "".join(rest)
        if who == ODD:
            self.asked.append(kind)
        if kind in self.known or (who == "PING" and kind in {"", "ACCOUNTZ"}):
            head = {"name": "odd", "id": ODD, "ver": "2.15.1", "jetstream": True}
            await message.respond(json.dumps({"server": head, "data": ACCOUNTS}).encode())


async def gathered(url: str, odd: Odd, path: Path) -> tuple[float, str]:
    """How long it takes to gather where this server is, too, and the log."""
    client = await nats.connect(url, user="s", password="s")
    for subject in ("PING", "PING.*", f"{ODD}.*"):
        await client.subscribe(f"$SYS.REQ.SERVER.{subject}", cb=odd.answer)
    await client.flush()
    login = ("-s", url, "--user", "s", "--password", "s", "--timeout", f"{WAIT_S}s")
    words = ("audit", "gather", "--no-server-profiles", "--output", str(path))
    begun = monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jsctl", *login, *words),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    took_s = monotonic() - begun
    await client.close()
    assert process.returncode == 0, err.decode()
    return took_s, err.decode()


async def test_a_server_that_is_gone_is_waited_for_once(
    jsctl_broker: BrokerFactory, tmp_path: Path
) -> None:
    odd = Odd(known=set())
    took_s, log = await gathered(jsctl_broker("-js", config=CONFIG).url, odd, tmp_path / "a.zip")
    assert odd.asked == ["VARZ", "STATSZ"]
    assert "Server odd does not answer any more, and is asked nothing" in log
    assert took_s < WAITS_MAX * WAIT_S, log


async def test_what_a_server_does_not_know_it_is_asked_for_in_vain(
    jsctl_broker: BrokerFactory, tmp_path: Path
) -> None:
    """It is there, so all the rest is asked for, and others are not waited for longer."""
    odd = Odd(known=KNOWN)
    path = tmp_path / "a.zip"
    _, log = await gathered(jsctl_broker("-js", config=CONFIG).url, odd, path)
    kinds = [kind for kind in odd.asked if kind != "STATSZ"]
    assert set(kinds) - {"ROUTEZ"} < KNOWN and kinds.count("ROUTEZ") == 1
    assert "does not answer any more" not in log
    archive = Reader(path)
    labels = ("variables", "connections", "routes", "health")
    found = {one for one in labels if "odd" in archive.names("server", artifact_type=one)}
    archive.close()
    assert found == {"variables", "connections", "health"}


@pytest.mark.parametrize("kind", list(KINDS))
async def test_a_server_that_is_there_says_so(kind: str) -> None:
    """By what it is asked for before it is given up."""
    with KINDS[kind]("-js", config=CONFIG) as server:
        client = await nats.connect(server.url, user="s", password="s")
        varz = json.loads((await client.request("$SYS.REQ.SERVER.PING.VARZ", b"")).data)
        subject = f"$SYS.REQ.SERVER.{varz['server']['id']}.STATSZ"
        answer = json.loads((await client.request(subject, b"")).data)
        await client.close()
    assert answer["server"]["id"] == varz["server"]["id"]


async def test_who_is_doubtful() -> None:
    """Some of those that are asked passed over such a request before, and others did not."""
    asked: list[str] = []

    async def answers(server: str) -> bool:
        asked.append(server)
        return server != "c"

    silence = Silence(answers)
    assert not silence.is_doubtful(["a", "b"], "K")
    assert await silence.note(["a", "c"], "K") == ["c"]
    assert await silence.note(["c"], "K") == []
    assert asked == ["a", "c"]
    assert silence.waited_for(["a", "b", "c"]) == ["a", "b"]
    assert silence.is_doubtful(["a", "b"], "K")
    assert not silence.is_doubtful(["a", "b"], "L")
    assert not silence.is_doubtful(["a"], "K")
