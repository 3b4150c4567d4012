"""What a server outside a cluster answers who asks for its raft groups, of which it has none."""

import json
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.contract.conftest import KINDS
from tests.support.wire_client import WireClient

CONFIG = f"""
accounts {{ SYS {{ users: [{{ user: {SYSTEM_USER}, password: {SYSTEM_PASSWORD} }}] }} }}
system_account: SYS
"""


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_page_is_not_found_and_an_answer_is_empty(kind: str) -> None:
    with KINDS[kind]("-js", config=CONFIG) as server:
        login = f"//{SYSTEM_USER}:{SYSTEM_PASSWORD}@"
        client = WireClient(server.url.replace("//", login))
        answer = json.loads(client.request(b"$SYS.REQ.SERVER.PING.RAFTZ", b""))
        client.close()
        assert answer["data"] == {} and "error" not in answer
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{server.monitor_url}/raftz")
        with refused.value as page:
            assert page.code == 404
