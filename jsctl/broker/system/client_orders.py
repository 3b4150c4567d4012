"""What an operator may have done to one client, by its id."""

from jsctl.broker.protocol import writer
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.sessions.sessions import Sessions

KICKED = "Kicked"


def _find(sessions: Sessions, cid: int) -> ClientSession | None:
    return next((one for one in sessions if one.client_id == cid and not one.closing), None)


def kick(sessions: Sessions, cid: int) -> str:
    """Close a client; what went wrong is returned."""
    session = _find(sessions, cid)
    if session is None:
        return "no such client or leafnode id"
    sessions.kick(session.conn, KICKED)
    return ""


def send_lame_duck(sessions: Sessions, cid: int) -> str:
    """Tell one client that it should go elsewhere; what went wrong is returned."""
    session = _find(sessions, cid)
    if session is None:
        return "no such client id"
    context = session.context
    fields = context.identity.fields(
        payload_bytes_max=context.limits.payload_bytes_max,
        client_id=session.client_id,
        client_ip=session.remote.remote_host,
        auth_required=context.router.accounts.logins.asks,
    )
    session.write(writer.info(fields | {"ldm": True}))
    return ""
