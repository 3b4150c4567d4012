"""Whose certificate a hub may show that is dialed by a number."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from jsctl.testing import HOST
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.leafs import IDS, PAIRS, hub_block, leaf_port, linked, spoke_block
from tests.support.ports import free_port


@pytest.mark.parametrize("first", ["true", "false"])
@pytest.mark.parametrize("name", [f"IP:{HOST}", "DNS:localhost"])
@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_of_two_addresses(kinds: tuple[str, str], name: str, first: str, tmp_path: Path) -> None:
    """That of the other address, which is a name; or the number."""
    at = make_certificates(tmp_path, "/CN=server", names=name)
    files = f"cert_file: '{at}/cert.pem', key_file: '{at}/key.pem', ca_file: '{at}/ca.pem'"
    more = f"timeout: 5, handshake_first: {first}"
    with ExitStack() as stack:
        config = hub_block(f"tls {{ {files}, {more} }}")
        hub = stack.enter_context(KINDS[kinds[0]](config=config, name="hub"))
        urls = f'"tls://localhost:{free_port()}", "tls://{HOST}:{leaf_port(hub)}"'
        trust = f"tls {{ ca_file: '{at}/ca.pem', {more} }}"
        config = spoke_block(f"{{ urls: [{urls}], {trust} }}")
        leaf = stack.enter_context(KINDS[kinds[1]](config=config, name="leaf"))
        linked(hub)
        linked(leaf)
