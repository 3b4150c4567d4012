"""The `gateway` block: what nats-server takes is taken, and what it refuses is refused."""

from pathlib import Path

import pytest

from jsctl.testing import HOST
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.configurations import Bad, ended, filled, refused_by_both

PAIR = "cert_file: '@CERT', key_file: '@KEY', ca_file: '@CA'"
GOOD = {
    "everything": f"""gateway {{
        name: G, host: "{HOST}", port: -1, advertise: "me:7222"
        connect_retries: 3, connect_backoff: true, reject_unknown_cluster: true
        write_deadline: "5s", write_timeout: close
        authorization {{ user: g, password: g, timeout: 0.5 }}
        tls {{ {PAIR} }}
        gateways: [
            {{ name: G, url: "nats://{HOST}:1" }}
            {{ name: H, url: "nats://u:p@{HOST}:1", tls {{ {PAIR} }} }}
            {{ name: I, urls: ["nats://{HOST}:1", "nats://{HOST}:2"] }}
        ]
    }}""",
    "nothing in it": "gateway {}",
    "with its cluster": f"""
        cluster {{ name: G, listen: "{HOST}:-1" }}
        gateway {{ name: G, listen: "{HOST}:-1" }}
    """,
}
"""Everything in them is taken by both."""


def door(text: str) -> str:
    """A gateway."""
    return f'gateway {{ name: G, listen: "{HOST}:-1", {text} }}'


BAD = (
    # Names that are none.
    Bad(door("nonsense: 1"), 'unknown field "nonsense" in gateway'),
    Bad(door("gateways: [ {name: H, url: 'nats://h:1', nonsense: 1} ]"), "nonsense"),
    Bad(door("authorization { user: g, pasword: g }"), 'did you mean "password"?'),
    Bad(door("tls { cert_fil: x }"), 'did you mean "cert_file"?'),
    # Values of another kind.
    Bad("gateway: 1", "expected a map"),
    Bad(door("connect_retries: many"), "expected an integer"),
    Bad(door("reject_unknown: 1"), "expected a boolean"),
    Bad(door("gateways: { name: H }"), "expected an array"),
    Bad(door("gateways: [ 1 ]"), "expected a map"),
    # Values of the right kind that make no sense.
    Bad("gateway { listen: '127.0.0.1' }", "is no address to listen on"),
    Bad(f'gateway {{ listen: "{HOST}:-1" }}', "gateway has no name"),
    Bad("gateway { name: G }", "has no port specified"),
    Bad(f"gateway {{ name: 'a b', listen: '{HOST}:-1' }}", "may not contain spaces"),
    Bad(door("write_timeout: never"), "'never' is not known"),
    Bad(door("gateways: [ {url: 'nats://h:1'} ]"), "has no name"),
    Bad(door("gateways: [ {name: H} ]"), "has no URL"),
    Bad(door("gateways: [ {name: H, url: '127.0.0.1:1'} ]"), "error parsing url"),
    Bad(door("authorization { users: [ {user: a, password: a} ] }"), "multiple users"),
    Bad(door("authorization { token: t }"), "does not support tokens"),
    Bad(door("tls { cert_file: '@CERT' }"), "missing 'key_file'"),
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for everything."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(GOOD))
def test_what_is_right_is_taken(kind: str, name: str, certificates: Path, tmp_path: Path) -> None:
    config = filled(GOOD[name], certificates)
    status, said = ended(kind, config, tmp_path, "-t")
    assert status == 0, said
    with KINDS[kind](config=config) as broker:
        assert ("Gateway name is G" in broker.logs) is (name != "nothing in it")
        assert '"gateway" has no effect' not in broker.logs


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_is_wrong_is_refused(number: int, certificates: Path, tmp_path: Path) -> None:
    refused_by_both(BAD[number], certificates, tmp_path)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_cluster_and_its_door_have_one_name(kind: str, tmp_path: Path) -> None:
    config = f'cluster {{ name: C, listen: "{HOST}:-1" }}\n' + door("")
    status, said = ended(kind, config, tmp_path)
    assert status == 1
    assert "cluster name conflicts between cluster and gateway definitions" in said
