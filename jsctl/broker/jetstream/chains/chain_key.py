"""How a stream's metadata asks for a chain of hashes."""

from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.sourcing.rules import invalid

CHAIN_KEY = "jsctl.chain"
CHAIN_KIND = "sha256"
"""The only value of that key."""


def check_chain(config: StreamConfig) -> None:
    """Raises ApiError for a kind of chain that there is not."""
    kind = config.metadata.get(CHAIN_KEY, CHAIN_KIND)
    if kind != CHAIN_KIND:
        raise invalid(f"metadata {CHAIN_KEY} has to be {CHAIN_KIND}")
