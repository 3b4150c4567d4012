"""How the operator's log names a client, and shows what it said: on one line, as nats-server."""

from jsctl.broker.conf.units import host_text
from jsctl.broker.sessions.session import ClientSession

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\r": "\\r", "\n": "\\n", "\t": "\\t"}
_ESCAPES |= {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
FIRST_LONE = 0xDC00
"""What a byte that is no UTF-8 is added to when it is kept in a text."""


def address(session: ClientSession) -> str:
    """Where it comes from, and its number."""
    remote = session.remote
    return f"{host_text(remote.remote_host, remote.remote_port)} - cid:{session.client_id}"


def label(session: ClientSession) -> str:
    """Address and number; once it has greeted, also library, name, account and user."""
    greeting, parts = session.greeting, [address(session)]
    if session.connected:
        version = f"v{greeting.version}" if greeting.version else ""
        library = ":".join([one for one in (version, greeting.lang, greeting.name) if one])
        user = _user(session)
        parts += [f'"{quoted(one.encode())}"' for one in (library, user) if one]
    return " - ".join(parts)


def _user(session: ClientSession) -> str:
    given = session.greeting.credentials
    if given.nkey:
        return f"{session.account.name}/nkey:{given.nkey}"
    if given.user:
        return f"{session.account.name}/user:{given.user}"
    return f"{session.account.name}/token" if given.token else ""


def printable(data: bytes) -> str:
    """Bytes of a stranger as text that stays on its line."""
    return "".join([one if one.isprintable() else _escaped(one) for one in _decoded(data)])


def quoted(data: bytes) -> str:
    """The same for what stands in quotation marks."""
    return "".join(
        [
            _ESCAPES.get(one) or (one if one.isprintable() else _escaped(one))
            for one in _decoded(data)
        ]
    )


def _decoded(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _escaped(char: str) -> str:
    number = ord(char)
    if FIRST_LONE <= number <= FIRST_LONE + 0xFF:
        return f"\\x{number - FIRST_LONE:02x}"
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}"
