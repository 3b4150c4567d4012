"""The client and TLS: the certificates that nats-server and `nats` take are good here, too."""

from pathlib import Path

import pytest

from jsctl.client.connection import connect
from jsctl.settings import Context, Settings
from jsctl.testing import Broker, BrokerFactory, RealServer
from tests.support.certificates import make_certificates

KINDS: dict[str, type[Broker]] = {"nats-server": RealServer, "jsctl": Broker}


@pytest.mark.parametrize("strict", [True, False], ids=["key usage", "no key usage"])
@pytest.mark.parametrize("kind", list(KINDS))
async def test_an_authority_is_trusted(
    jsctl_broker: BrokerFactory, tmp_path: Path, kind: str, strict: bool
) -> None:
    files = make_certificates(tmp_path, strict=strict)
    ca, cert, key = (str(files / name) for name in ("ca.pem", "cert.pem", "key.pem"))
    lines = f'cert_file: "{cert}", key_file: "{key}", ca_file: "{ca}", verify: true'
    broker = jsctl_broker(server=KINDS[kind], config=f"tls {{ {lines} }}")
    context = Context(url=broker.url, ca=ca, cert=cert, key=key)
    async with connect(Settings(connection=context)) as client:
        assert client.is_connected
