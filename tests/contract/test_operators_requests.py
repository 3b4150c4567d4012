"""What operators ask of a cluster, on both servers: replicas that are evacuated or removed one by
one, streams that are moved, accounts that are emptied, and what is refused of that."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

CONFIG = """
accounts {
    A { jetstream: enabled, users: [{ user: a, password: a }] }
    B { jetstream: enabled, users: [{ user: b, password: b }] }
    SYS { users: [{ user: sys, password: sys }] }
}
system_account: SYS
"""
Refusals = tuple[tuple[str, bytes, int], ...]
REFUSED: Refusals = (
    *(
        (f"{kind}.PEER.{word}.{names}", body, code)
        for word in ("EVACUATE", "REMOVE")
        for kind, names, body, code in (
            ("CONSUMER", "R3.c", b"", 10003),
            ("CONSUMER", "R3.c", b"{}", 10003),
            ("CONSUMER", "R3.c", b'{"peer":""}', 10003),
            ("CONSUMER", "R3.c", b'{"peer":1}', 10025),
            ("CONSUMER", "R3.c", b'{"pear":"n1"}', 10025),
            ("CONSUMER", "none.c", b'{"peer":"n1"}', 10059),
            ("CONSUMER", "R3.none", b'{"peer":"n1"}', 10014),
            ("CONSUMER", "R3.c", b'{"peer":"none"}', 10040),
            ("CONSUMER", "R3.c", b'{"peer":"n1"}', 10075),
            ("STREAM", "R3", b"", 10003),
            ("STREAM", "R3", b'{"peer":1}', 10025),
            ("STREAM", "none", b'{"peer":"n1"}', 10059),
            ("STREAM", "R3", b'{"peer":"none"}', 10040),
        )
    ),
    ("STREAM.PEER.EVACUATE.R3", b'{"peer":"n1"}', 10075),
    ("STREAM.CANCEL_MOVE.R3", b"", 10129),
)
SYSTEM_REFUSED: Refusals = (
    ("ACCOUNT.STREAM.MOVE.A.none", b'{"server":"n1"}', 10059),
    ("ACCOUNT.STREAM.MOVE.A.R3", b'{"server":1}', 10025),
    ("ACCOUNT.STREAM.CANCEL_MOVE.A.none", b"", 10059),
    ("ACCOUNT.STREAM.MOVE.NOBODY.R3", b'{"server":"n1"}', 10035),
    ("ACCOUNT.STREAM.CANCEL_MOVE.NOBODY.R3", b"", 10035),
    ("ACCOUNT.STREAM.MOVE.A.R3", b'{"server":"nobody"}', 10044),
    ("ACCOUNT.STREAM.CANCEL_MOVE.A.R3", b"no JSON", 10129),
    ("META.RESCUE", b"", 10003),
    ("META.RESCUE", b'{"quorum_needed":9}', 10224),
    ("META.RESCUE", b'{"quorum_needed":"x"}', 10025),
    ("SERVER.EVACUATE", b"", 10003),
)


class Asking:
    """A client of the API."""

    def __init__(self, url: str, user: str) -> None:
        self.client = WireClient(url.replace("//", f"//{user}:{user}@"))

    def __call__(self, subject: str, body: bytes = b"") -> dict[str, Any]:
        answer = self.client.request(b"$JS.API." + subject.encode(), body)
        found: dict[str, Any] = json.loads(answer)
        return found

    def make(self, subject: str, **body: Any) -> None:
        """What has to succeed."""
        found = self(subject, json.dumps(body).encode())
        assert "error" not in found, (subject, found)


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers. The real ones are only asked for what they refuse: one replica after the
    other leaves streams and consumers without a leader there, for minutes."""
    with Cluster(3, config=CONFIG, server=KINDS[str(request.param)]) as running:
        yield running


@pytest.fixture(scope="module")
def ask(cluster: Cluster) -> Iterator[Asking]:
    """A user of account A, with a stream of three replicas and one of one."""
    asking = Asking(cluster.urls[0], "a")
    for name, count in (("R3", 3), ("R1", 1)):
        subjects = [f"{name.lower()}.>"]
        asking.make(f"STREAM.CREATE.{name}", name=name, subjects=subjects, num_replicas=count)
    for number, replicas in (("c", 3), ("one", 1)):
        config = {"durable_name": number, "ack_policy": "explicit", "num_replicas": replicas}
        asking.make(f"CONSUMER.CREATE.R3.{number}", stream_name="R3", config=config)
    yield asking
    asking.client.close()


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Asking]:
    """A user of the system account."""
    asking = Asking(cluster.urls[0], "sys")
    yield asking
    asking.client.close()


def codes(ask: Asking, requests: Refusals) -> list[int]:
    found = [ask(subject, body) for subject, body, _ in requests]
    return [one.get("error", {}).get("err_code", 0) for one in found]


def test_what_is_refused(ask: Asking, admin: Asking) -> None:
    assert codes(ask, REFUSED) == [code for _, _, code in REFUSED]
    assert codes(admin, SYSTEM_REFUSED) == [code for _, _, code in SYSTEM_REFUSED]


OURS = pytest.mark.parametrize("cluster", ["jsctl"], indirect=True)


@OURS
@pytest.mark.parametrize("word", ["EVACUATE", "REMOVE"])
@pytest.mark.parametrize(("kind", "names"), [("CONSUMER", "R3.one"), ("STREAM", "R1")])
def test_replicas_go_elsewhere(ask: Asking, kind: str, names: str, word: str) -> None:
    def leader() -> str:
        info = ask(f"{kind}.INFO.{names}")
        return str(info.get("cluster", {}).get("leader", ""))

    before = wait_for(leader, "a leader")
    answer = ask(f"{kind}.PEER.{word}.{names}", json.dumps({"peer": before}).encode())
    response = f"{kind.lower()}_{word.lower()}_peer_response"
    assert answer == {"type": f"io.nats.jetstream.api.v1.{response}", "success": True}
    wait_for(lambda: leader() not in ("", before), f"{names} is led elsewhere", 25.0)


@OURS
def test_a_stream_is_moved(ask: Asking, admin: Asking) -> None:
    ask.make("STREAM.CREATE.MOVED", name="MOVED", subjects=["moved.>"])

    def leader() -> str:
        return str(ask("STREAM.INFO.MOVED").get("cluster", {}).get("leader", ""))

    before = wait_for(leader, "a leader")
    body = json.dumps({"server": before}).encode()
    assert "error" not in admin("ACCOUNT.STREAM.MOVE.A.MOVED", body)
    wait_for(lambda: leader() not in ("", before), "it is led elsewhere")


@OURS
def test_an_account_is_emptied(cluster: Cluster, admin: Asking) -> None:
    other = Asking(cluster.urls[0], "b")
    for name in ("X", "Y"):
        other.make(f"STREAM.CREATE.{name}", name=name, subjects=[f"{name}.>"])
    purged = admin("ACCOUNT.PURGE.B")
    kind = "io.nats.jetstream.api.v1.account_purge_response"
    assert purged == {"type": kind, "initiated": True}
    wait_for(lambda: not other("STREAM.NAMES").get("streams"), "no stream is left")
    other.client.close()
