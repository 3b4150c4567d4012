"""`websocket` and `mqtt`: what nats-server takes is taken with a warning,
and what it refuses is refused, with its place."""

from pathlib import Path

import pytest

from jsctl.testing import HOST
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.configurations import Bad, ended, filled, refused_by_both

ACCOUNTS = "accounts { A { users: [ {user: a, password: a} ] } }\n"
PAIR = "cert_file: '@CERT', key_file: '@KEY', ca_file: '@CA'"
GOOD = {
    "websocket": ACCOUNTS
    + f"""websocket {{
        listen: "{HOST}:-1", advertise: "me:1", same_origin: true, compression: true
        allowed_origins: ["https://a.example", "http://b.example:8080"]
        handshake_timeout: 2, ping_interval: "30s", no_auth_user: a
        user_cookie: u, pass_cookie: p, token_cookie: t, headers {{ X-Frame: deny }}
        tls {{ {PAIR}, verify_and_map: true, handshake_first: true }}
    }}""",
    "websocket, a token": "websocket { port: -1, no_tls: true, origin: 'https://a.example'"
    ", handshake_timeout: '2s', authorization { token: t, timeout: 2 } }",
    "websocket, no port": ACCOUNTS + "websocket { no_auth_user: z, jwt_cookie: j }",
    "mqtt": ACCOUNTS
    + f"""server_name: N
    jetstream: enabled
    mqtt {{
        host: "{HOST}", port: -1, no_auth_user: a, ack_wait: "5s", js_api_timeout: "2s"
        max_ack_pending: 65535, js_domain: D, stream_replicas: 1, consumer_memory_storage: true
        consumer_inactive_threshold: "5m", reject_qos2_publish: true, downgrade_qos2_subscribe: true
        tls {{ certs: [ {{ cert_file: '@CERT', key_file: '@KEY' }} ] }}
    }}""",
}
"""Everything in them is taken by both."""


def web(text: str) -> str:
    """A block of websockets."""
    return f'websocket {{ listen: "{HOST}:-1", no_tls: true, {text} }}'


def things(text: str) -> str:
    """A block of MQTT, with what it needs."""
    store = 'server_name: N\njetstream { store_dir: "@DIR/store", max_mem: 1MB, max_file: 1MB }\n'
    return f'{store}mqtt {{ listen: "{HOST}:-1", {text} }}'


BAD = (
    # Names that are none.
    Bad(web("nonsense: 1"), 'unknown field "nonsense" in websocket'),
    Bad(web("authorization { users: [] }"), 'unknown field "users"'),
    Bad(things("nonsense: 1"), 'unknown field "nonsense" in mqtt'),
    Bad(things("authorization { nkey: U }"), 'unknown field "nkey"'),
    # Values of another kind.
    Bad("websocket: [1]", "expected a map"),
    Bad("mqtt: on", "expected a map"),
    Bad(web("same_origin: 1"), "expected a boolean"),
    Bad(web("handshake_timeout: true"), "expected seconds or a duration"),
    Bad(web("handshake_timeout: soon"), "expected seconds or a duration"),
    Bad(web("headers: x"), "expected a map"),
    Bad(web("headers { X: 1 }"), "expected a string"),
    Bad(web("origins: 1"), "expected a string or an array"),
    Bad(things("max_ack_pending: x"), "expected an integer"),
    Bad(things("js_domain: 1"), "expected a string"),
    # Values of the right kind that make no sense.
    Bad(f'websocket {{ listen: "{HOST}:-1" }}', "websocket requires TLS"),
    Bad(web("origins: ['ftp://a']"), "unable to parse allowed origin"),
    Bad(web("origins: ['https://a:x']"), "unable to parse allowed origin"),
    Bad(web("origins: ['https://']"), "unable to parse allowed origin"),
    Bad(web("no_auth_user: z"), "not present as user"),
    Bad(web("jwt_cookie: j"), "trusted operators"),
    Bad(web("headers { Host: x }"), "invalid header 'Host'"),
    Bad(web("headers { Sec-WebSocket-Key: x }"), "invalid header"),
    Bad(ACCOUNTS + web("authorization { user: u, password: p }"), "not compatible with"),
    Bad(ACCOUNTS + web("authorization { token: t }"), "not compatible with"),
    Bad(web("tls { verify_cert_and_check_known_urls: true }"), "not supported"),
    Bad(web("tls { pinned_certs: [x] }"), "is no pinned certificate"),
    Bad(web("tls { curve_preferences: [x] }"), "unrecognized curve preference"),
    Bad(web("tls { curve_preferences: [] }"), "cannot be empty"),
    Bad(web("tls { cert_store: x }"), "not compatible with current operating system"),
    Bad(things("max_ack_pending: 65536"), "is not within 0 and 65535"),
    Bad(things("ack_wait: '-1s'"), "must be a positive value"),
    Bad(things("no_auth_user: z"), "not present as user"),
    Bad(ACCOUNTS + things("authorization { user: u, password: p }"), "not compatible with"),
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
    with KINDS[kind](config=config.replace("@DIR", str(tmp_path))) as broker:
        block = name.partition(",")[0]
        nothing = f'"{block}" has no effect in this server (nothing listens for'
        assert kind == "nats-server" or nothing in broker.logs


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_is_wrong_is_refused(number: int, certificates: Path, tmp_path: Path) -> None:
    refused_by_both(BAD[number], certificates, tmp_path)
