"""What a client says of itself in CONNECT (client protocol 1.4)."""

from dataclasses import field

from jsctl.api.jsontext import parse_object
from jsctl.api.strict import DecodeError
from jsctl.broker.accounts.identity import Credentials
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Greeting:
    """A decoded CONNECT; keys that a client leaves out keep these values."""

    verbose: bool = True
    pedantic: bool = True
    echo: bool = True
    headers: bool = False
    no_responders: bool = False
    protocol: int = 0
    name: str = ""
    lang: str = ""
    version: str = ""
    names_account: bool = False
    """Old clients could ask for an account; no server grants that any more."""
    credentials: Credentials = field(default_factory=Credentials)


_FLAGS = ("verbose", "pedantic", "echo", "headers", "no_responders")
_TEXTS = ("name", "lang", "version")
_SECRETS = {
    "user": "user",
    "pass": "password",
    "auth_token": "token",
    "nkey": "nkey",
    "sig": "signature",
    "jwt": "jwt",
}
_KINDS: dict[str, type] = (
    dict.fromkeys((*_FLAGS, "tls_required", "new_account"), bool)
    | dict.fromkeys((*_TEXTS, *_SECRETS, "account", "remote_account", "proxy_sig"), str)
    | dict.fromkeys(("import", "export"), dict)
)
"""Every key with its type, also those that mean nothing here: who sends another one has to go."""


def read_connect(body: bytes) -> Greeting | None:
    """Decode CONNECT; None when it is not a JSON object or a value has the wrong type."""
    try:
        fields = parse_object(body)
    except DecodeError:
        return None
    given: dict[str, object] = {key: fields[key] for key in fields if fields[key] is not None}
    if not _well_typed(given):
        return None
    flags = {key: bool(given[key]) for key in _FLAGS if key in given}
    texts = {key: str(given[key]) for key in _TEXTS if key in given}
    secrets = {name: str(given[key]) for key, name in _SECRETS.items() if key in given}
    protocol = given.get("protocol", 0)
    assert isinstance(protocol, int)
    return Greeting(
        verbose=flags.get("verbose", True),
        pedantic=flags.get("pedantic", True),
        echo=flags.get("echo", True),
        headers=flags.get("headers", False),
        no_responders=flags.get("no_responders", False),
        protocol=protocol,
        name=texts.get("name", ""),
        lang=texts.get("lang", ""),
        version=texts.get("version", ""),
        names_account=bool(given.get("account") or given.get("new_account")),
        credentials=Credentials(**secrets),
    )


def _well_typed(given: dict[str, object]) -> bool:
    protocol = given.get("protocol", 0)
    if not isinstance(protocol, int) or isinstance(protocol, bool):
        return False
    return all(isinstance(value, _KINDS.get(key, object)) for key, value in given.items())
