"""Who made a request of the API, as brokers tell each other."""

from jsctl.broker.jetstream.requests import AskerClaims, ClientInfo
from jsctl.broker.peers.frame_codec import FrameReader, FrameWriter


def write_client(out: FrameWriter, item: ClientInfo) -> None:
    """A client, without what its JWT says."""
    for text in (item.account, item.user, item.server, item.cluster):
        out.text(text)
    out.u64(item.conn)
    for text in (item.host, item.name, item.lang, item.version):
        out.text(text)
    out.i64(item.start_ns)


def read_client(data: FrameReader) -> ClientInfo:
    """The same. Raises ProtocolError."""
    account, user, server, cluster = data.text(), data.text(), data.text(), data.text()
    conn = data.u64()
    host, name, lang, version = data.text(), data.text(), data.text(), data.text()
    start_ns = data.i64()
    return ClientInfo(account, user, server, cluster, conn, host, name, lang, version, start_ns)


def write_claims(out: FrameWriter, claims: AskerClaims | None) -> None:
    """What its JWT says, at the end of the item; nothing outside operator mode. No broker of a
    version that knows of none is in a cluster where there are some."""
    if claims is not None:
        out.text(claims.issuer)
        out.text(claims.name)
        out.each(claims.tags, out.text)


def read_claims(data: FrameReader) -> AskerClaims:
    """The same. Raises ProtocolError."""
    return AskerClaims(data.text(), data.text(), tuple(data.each(data.text)))
