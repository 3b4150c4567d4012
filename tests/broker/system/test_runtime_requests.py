"""What is asked of Go's runtime: an answer at once, so that nobody waits for what is not there."""

import json

import pytest

from jsctl.testing import BrokerFactory
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes
SYSTEM = "accounts { $SYS { users: [ { user: s, password: s } ] } }"


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("PROFILEZ", {"name": "heap", "debug": 1}, {"error": 'Profile "heap" not found'}),
        ("PROFILEZ", {}, {"error": "Profile name not specified"}),
        ("EXPVARZ", {}, None),
    ],
)
def test_there_is_none(
    kind: str, body: dict[str, object], told: dict[str, object] | None, jsctl_broker: BrokerFactory
) -> None:
    url = jsctl_broker(config=SYSTEM).url.replace("://", "://s:s@")
    wire = WireClient(url)
    server = json.loads(wire.request(b"$SYS.REQ.SERVER.PING.IDZ", b""))["id"]
    for target in ("PING", server):
        asked = f"$SYS.REQ.SERVER.{target}.{kind}".encode()
        found = json.loads(wire.request(asked, json.dumps(body).encode()))
        assert found["server"]["id"] == server
        assert found["data"] == (told and {"profile": None, **told})
        assert ("error" in found) is (told is None)
    wire.close()
