"""An operator, an account and a user as JWTs, for a nats-server in operator mode."""

import base64
import hashlib
import json
from collections.abc import Mapping

from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.auth.token import credentials
from jsctl.dataclass import dataclass

ABOUT = {"version": 2}
UNLIMITED = dict.fromkeys(
    ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage",
     "streams", "consumer"), -1,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operated:
    """The configuration of a server, and the credentials file of a user of its account."""

    config: str
    account: str
    credentials: str


def operated() -> Operated:
    """A new operator with all else."""
    operator, account, user = map(generate, (KeyKind.OPERATOR, KeyKind.ACCOUNT, KeyKind.USER))
    owner = _token("O", operator, operator, {"type": "operator"})
    tenant = _token("A", account, operator, {"type": "account", "limits": UNLIMITED})
    free = dict.fromkeys(("subs", "data", "payload"), -1)
    who = _token("U", user, account, {"type": "user", **free})
    preload = f"resolver_preload {{ {account.public}: {tenant} }}"
    config = f"operator: {owner}\nresolver: MEMORY\n{preload}\n"
    return Operated(config, account.public, credentials(who, user))


def _token(name: str, subject: KeyPair, issuer: KeyPair, said: Mapping[str, object]) -> str:
    full: dict[str, object] = {
        "iss": issuer.public, "iat": 1_700_000_000, "sub": subject.public, "name": name,
        "nats": {**said, **ABOUT},
    }  # fmt: skip
    digest = hashlib.new("sha512_256", json.dumps(full).encode()).digest()
    full["jti"] = base64.b32encode(digest).decode().rstrip("=")
    parts = ({"typ": "JWT", "alg": "ed25519-nkey"}, full)
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_encoded(issuer.sign(signed.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
