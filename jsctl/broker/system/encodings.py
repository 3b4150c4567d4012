"""Answers and events in the encoding that their receiver accepts."""

import gzip

from jsctl.broker.protocol import headers as header_block


def compressed(body: bytes, accepts: str) -> tuple[bytes, bytes]:
    """The body and its header block; empty when nothing was asked for.

    `accepts` is the value of `Accept-Encoding`. S2 has Snappy's format here, as nats-server sends
    it; what is not spoken stays plain, and the header says so.
    """
    wanted = accepts.lower()
    if not wanted:
        return body, b""
    if "snappy" in wanted or "s2" in wanted:
        import cramjam  # loaded late: few ask for it

        return bytes(cramjam.snappy.compress(body)), _encoding(b"snappy")
    if "gzip" in wanted:
        return gzip.compress(body, mtime=0), _encoding(b"gzip")
    return body, _encoding(b"identity")


def _encoding(name: bytes) -> bytes:
    return header_block.build([(b"Content-Encoding", name)])
