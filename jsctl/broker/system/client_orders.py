"""What an operator, or a limit, may have done to single connections, by their ids."""

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.protocol import writer
from jsctl.broker.sessions.refusals import ACCOUNT_FULL
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.system.server import ServerParts

KICKED = "Kicked"


def _find(sessions: Sessions, cid: int) -> ClientSession | None:
    return next((one for one in sessions if one.client_id == cid and not one.closing), None)


def kick(server: ServerParts, cid: int) -> str:
    """Close a client, or the connection of a leaf node or hub; what went wrong is returned."""
    session = _find(server.sessions, cid)
    if session is not None:
        server.sessions.kick(session.conn, KICKED)
    elif server.leafs is None or not server.leafs.kick(cid, KICKED):
        return "no such client or leafnode id"
    return ""


def make_room(server: ServerParts, account: Account) -> None:
    """Close who is too many in an account, the youngest first: others may be on other servers."""
    over = account.connections_over()
    if over:
        clients = [one for one in server.sessions if one.account is account and one.authorized]
        for client in sorted(clients, key=lambda one: -one.client_id)[:over]:
            client.close(*ACCOUNT_FULL)
    if server.leafs is not None and account.leafs_over():
        server.leafs.make_room(account)


def send_lame_duck(server: ServerParts, cid: int) -> str:
    """Tell one client that it should go elsewhere; what went wrong is returned."""
    session = _find(server.sessions, cid)
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
