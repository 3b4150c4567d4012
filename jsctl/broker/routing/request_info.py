"""Who asks: the header that a request gets when it crosses into another account.

The account and the round trip are told always; who exactly it is, and through which server, only
if the importing account shares that, or to the system account. What a client wrote into such a
header itself is replaced: services may trust it.
"""

import json

from jsctl.api.codec import dumps
from jsctl.api.times import format_time
from jsctl.broker.protocol import headers as header_block
from jsctl.broker.routing.session import ClientSession

HEADER = b"Nats-Request-Info"
Fields = dict[str, object]


def issuer(session: ClientSession) -> str:
    """The account that vouches for a user known by nkey; empty for other users."""
    known = session.user in session.hall.router.accounts.nkeys
    return session.account.name if known else ""


def introduce(
    session: ClientSession | None,
    account: str,
    headers: bytes | None,
    *,
    shared: bool,
    system: bool,
) -> bytes:
    """The headers of a request that leaves the account where it was made.

    `session` is None for what the broker itself sends; `system` requests go to the system account.
    """
    if session is None:
        return _with(headers, {"acc": account})
    fields: Fields = _details(session) if shared else {"acc": account, "rtt": session.rtt_ns}
    if shared or system:
        fields |= _place(session)
    return _with(headers, fields)


def pass_on(
    session: ClientSession | None, account: str, headers: bytes, *, shared: bool, system: bool
) -> bytes:
    """The headers of a request that crosses once more, from an account that offers the service
    of another one. `headers` are of `introduce`."""
    fields: Fields = json.loads(header_block.get(headers, HEADER) or b"{}")
    fields["svc"] = account
    if session is not None and (shared or system):
        fields |= _place(session)
    return _with(headers, fields)


def _details(session: ClientSession) -> Fields:
    greeting = session.greeting
    return {
        "start": format_time(session.started_ns),
        "host": session.remote.remote_host,
        "id": session.client_id,
        "acc": session.account.name,
        "user": session.user,
        "name": greeting.name,
        "lang": greeting.lang,
        "ver": greeting.version,
        "rtt": session.rtt_ns,
        "issuer_key": issuer(session),
        "kind": "Client",
        "client_type": "nats",
    }


def _place(session: ClientSession) -> Fields:
    identity = session.hall.identity
    return {"server": identity.server_name, "cluster": identity.cluster}


def _with(headers: bytes | None, fields: Fields) -> bytes:
    told = {key: value for key, value in fields.items() if value}
    return header_block.set_value(headers or b"", HEADER, dumps(told))
