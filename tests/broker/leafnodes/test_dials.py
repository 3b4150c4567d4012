"""How hubs are dialed: secured where a URL says so, whatever they say of themselves."""

import pytest

from jsctl.broker.leafnode_options import LeafNodeOptions, LeafRemote, LeafUrl
from jsctl.broker.tls_options import TlsOptions
from tests.support.node_play import NodePlay, node_options

PLAIN = LeafUrl("10.0.0.9", 7422, "u", "p", "nats")
SECURED = LeafUrl("10.0.0.9", 7422, "u", "p", "tls")
OTHER = LeafUrl("10.0.0.8", 7422, scheme="TLS")
BLOCK = TlsOptions(ca_file="ca.pem")


@pytest.mark.parametrize(
    ("remote", "tls"),
    [
        (LeafRemote((PLAIN,)), None),
        (LeafRemote((SECURED,)), TlsOptions()),
        (LeafRemote((PLAIN, OTHER)), TlsOptions()),
        (LeafRemote((PLAIN,), tls=BLOCK), BLOCK),
        (LeafRemote((SECURED,), tls=BLOCK), BLOCK),
    ],
)
def test_a_url_that_is_to_be_secured_is(remote: LeafRemote, tls: TlsOptions | None) -> None:
    """Else whoever is in between takes the password, by leaving out a word of INFO."""
    play = NodePlay(node_options(leafnodes=LeafNodeOptions(remotes=(remote,))))
    (dial,) = play.dials
    assert getattr(dial, "tls", None) == tls
