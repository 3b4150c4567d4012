"""A proxy with TLS on loopback: it decrypts, and passes on bytes as they are."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.certificates import make_certificates
from tests.support.relay import pass_on, served


class TlsProxy:
    """Its port, and the one of the server behind it, which may be known later."""

    def __init__(self) -> None:
        self.port = 0
        self.behind = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        await pass_on(reader, writer, await asyncio.open_connection("127.0.0.1", self.behind))


@contextmanager
def tls_proxy(place: Path) -> Iterator[TlsProxy]:
    """Runs one in a thread; `place` gets its certificates."""
    make_certificates(place)
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secured.load_cert_chain(place / "cert.pem", place / "key.pem")
    proxy = TlsProxy()
    with served(proxy.serve, secured) as proxy.port:
        yield proxy
