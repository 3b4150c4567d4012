"""An operator with accounts and users as JWTs, and the files that servers and clients need of them.

A world is made in a directory of a test. What an account says can be changed and signed again
(`OperatorWorld.account` with a name that it has keeps the account's key), and the configuration
follows.
"""

import base64
import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from jsctl.auth.claims import (
    NO_LIMIT,
    UNLIMITED,
    Account,
    AccountLimits,
    Activation,
    Head,
    JetStreamLimits,
    NatsLimits,
    Operator,
    OperatorLimits,
    User,
    UserPermissionLimits,
    UserScope,
)
from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.auth.token import Claims, credentials, sign
from jsctl.dataclass import dataclass, replace

FREE = UserPermissionLimits(nats=UNLIMITED)
"""A user that its account's limits alone bind."""
STORES = JetStreamLimits(NO_LIMIT, NO_LIMIT, NO_LIMIT, NO_LIMIT)
NO_STORAGE = JetStreamLimits()
SYSTEM = "SYS"


def limits(
    storage: JetStreamLimits = STORES,
    *,
    nats: NatsLimits = UNLIMITED,
    tiers: Mapping[str, JetStreamLimits] | None = None,
    connections: int = NO_LIMIT,
    leafs: int = NO_LIMIT,
    no_bearer: bool = False,
) -> OperatorLimits:
    """Of an account that may do all but what is said; with tiers `storage` means nothing."""
    own = AccountLimits(NO_LIMIT, NO_LIMIT, True, no_bearer, connections, leafs)
    return OperatorLimits(nats, own, NO_STORAGE if tiers else storage, dict(tiers or {}))


def scope(key: KeyPair, template: UserPermissionLimits = FREE, role: str = "r") -> object:
    """A signing key whose users have the rules of a template, for `Account.signing_keys`."""
    from jsctl.api.codec import encode

    return encode(UserScope(key=key.public, role=role, template=template))


def now_s() -> int:
    """Seconds of the Unix epoch."""
    return time.time_ns() // 1_000_000_000


def account_key() -> KeyPair:
    """A new key of an account, or one that signs for it."""
    return generate(KeyKind.ACCOUNT)


@dataclass(frozen=True, slots=True)
class Member:
    """A user: its JWT and its key."""

    token: str
    pair: KeyPair

    @property
    def credentials(self) -> str:
        """The content of its credentials file."""
        return credentials(self.token, self.pair)

    def signature(self, challenge: str) -> str:
        """A challenge, signed."""
        return _encoded(self.pair.sign(challenge.encode()))

    def login(self, challenge: str, **more: object) -> dict[str, object]:
        """What CONNECT says, as `tests.support.login` takes it."""
        return {"jwt": self.token, "sig": self.signature(challenge), **more}


@dataclass(frozen=True, slots=True)
class Tenant:
    """An account as it was signed last."""

    pair: KeyPair
    token: str
    said: Account

    @property
    def public(self) -> str:
        """What servers call it."""
        return self.pair.public


class OperatorWorld:
    """An operator, its accounts and their users; `directory` gets its files, if there are any."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        strict: bool = False,
        keys: int = 0,
        system: bool = True,
    ) -> None:
        """`keys`: how many signing keys the operator has, `system`: whether it names an account
        SYS as the system account; that is made at once, and stores nothing."""
        self.directory = directory or Path()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.pair = generate(KeyKind.OPERATOR)
        self.keys = tuple(generate(KeyKind.OPERATOR) for _ in range(keys))
        self.tenants: dict[str, Tenant] = {}
        """Name -> the account: those that the configuration has."""
        system_pair = account_key()
        said = Operator(
            signing_keys=tuple(one.public for one in self.keys),
            strict_signing_key_usage=strict,
            system_account=system_pair.public if system else "",
        )
        head = Head(name="O", sub=self.pair.public)
        self.token = sign(Claims(head, said), self.pair, now_s())[0]
        if system:
            self.account(SYSTEM, Account(limits=limits(NO_STORAGE)), pair=system_pair)

    def account(
        self,
        name: str,
        said: Account | None = None,
        *,
        issuer: KeyPair | None = None,
        pair: KeyPair | None = None,
        tags: Iterable[str] = (),
        issued_s: int = 0,
        expires_s: int = 0,
        starts_s: int = 0,
    ) -> Tenant:
        """Make an account, or sign it again: what is not said stays as it is. Without a word an
        account is not limited. The issuer is the operator, or its first signing key."""
        old = self.tenants.get(name)
        given = said or (old.said if old else Account())
        if given.limits == OperatorLimits():
            given = replace(given, limits=limits())
        if tags:
            given = replace(given, generic=replace(given.generic, tags=tuple(tags)))
        used = pair or (old.pair if old else account_key())
        head = Head(name=name, sub=used.public, exp=expires_s, nbf=starts_s)
        by = issuer or (self.keys[0] if self.keys else self.pair)
        token = sign(Claims(head, given), by, issued_s or now_s())[0]
        self.tenants[name] = Tenant(used, token, given)
        return self.tenants[name]

    def user(
        self,
        account: str,
        name: str = "u",
        rules: UserPermissionLimits = FREE,
        *,
        issuer: KeyPair | None = None,
        pair: KeyPair | None = None,
        tags: Iterable[str] = (),
        issued_s: int = 0,
        expires_s: int = 0,
        starts_s: int = 0,
    ) -> Member:
        """A user of an account. `issuer` is a signing key of it; one of a signing key with a scope
        has `rules` of `UserPermissionLimits()`: nothing of its own."""
        tenant = self.tenants[account]
        used = pair or generate(KeyKind.USER)
        said = User(rules=rules, issuer_account=tenant.public if issuer else "")
        said = replace(said, generic=replace(said.generic, tags=tuple(tags)))
        head = Head(name=name, sub=used.public, exp=expires_s, nbf=starts_s)
        token = sign(Claims(head, said), issuer or tenant.pair, issued_s or now_s())[0]
        return Member(token, used)

    def activation(
        self,
        exporter: str,
        importer: str,
        subject: str,
        kind: str,
        *,
        issuer: KeyPair | None = None,
        issued_s: int = 0,
        expires_s: int = 0,
    ) -> str:
        """A token that lets one account import a `kind` ("stream", "service") of another one."""
        giver = self.tenants[exporter]
        said = Activation(subject=subject, kind=kind, issuer_account=giver.public if issuer else "")
        head = Head(name=subject, sub=self.tenants[importer].public, exp=expires_s)
        return sign(Claims(head, said), issuer or giver.pair, issued_s or now_s())[0]

    def preload(self, *others: "OperatorWorld", without: Iterable[str] = ()) -> str:
        """The `resolver_preload` of a configuration, with the accounts of other operators."""
        missing = set(without)
        lines = [
            f'  {one.public}: "{one.token}"\n'
            for world in (self, *others)
            for name, one in world.tenants.items()
            if name not in missing
        ]
        return f"resolver_preload {{\n{''.join(lines)}}}\n"

    def config(self, *others: "OperatorWorld", without: Iterable[str] = ()) -> str:
        """Operator mode with all accounts, but some, in the configuration itself. With several
        operators a server has no system account unless its file names one."""
        tokens = ", ".join(f'"{one.token}"' for one in (self, *others))
        preload = self.preload(*others, without=without)
        return f"operator: [{tokens}]\nresolver: MEMORY\n{preload}"

    def full_config(self, place: str = "@DIR/jwt", more: str = "", *, preload: bool = True) -> str:
        """The same with a resolver of type full, whose directory `place` is."""
        resolver = f'resolver {{ type: full, dir: "{place}", {more} }}\n'
        return f'operator: "{self.token}"\n{resolver}{self.preload() if preload else ""}'

    def credentials(self, member: Member, name: str = "user.creds") -> Path:
        """The credentials file of a user."""
        path = self.directory / name
        path.write_text(member.credentials)
        return path


@dataclass(frozen=True, slots=True)
class Operated:
    """The configuration of a server, and the credentials file of a user of its account."""

    config: str
    account: str
    credentials: str


def operated() -> Operated:
    """A new operator with all else, as text alone; its servers have no system account."""
    world = OperatorWorld(system=False)
    account = world.account("A").public
    return Operated(world.config(), account, world.user("A").credentials)


def deletion(by: KeyPair, *accounts: str, said: object = None) -> bytes:
    """An order to delete accounts; `said` stands in place of their list."""
    listed = list(accounts) if said is None else said
    return written({"nats": {"type": "generic", "accounts": listed}}, by, by).encode()


def written(
    document: Mapping[str, object],
    subject: KeyPair,
    issuer: KeyPair,
    *,
    version: int = 2,
    header: Mapping[str, object] | None = None,
) -> str:
    """A JWT of any content, well signed: what `sign` would not write. Of version 1 the kind of
    claims stands beside "nats"."""
    about: dict[str, object] = {"iss": issuer.public, "iat": 1_700_000_000, "sub": subject.public}
    full = {**about, **document}
    if version > 1:
        said = full.get("nats", {})
        assert isinstance(said, Mapping)
        full["nats"] = {"version": version, **said}
    digest = hashlib.new("sha512_256", json.dumps(full).encode()).digest()
    full["jti"] = base64.b32encode(digest).decode().rstrip("=")
    algorithm = "ed25519" if version == 1 else "ed25519-nkey"
    parts = (header or {"typ": "JWT", "alg": algorithm}, full)
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
    covered = signed.partition(".")[2] if version == 1 else signed
    return f"{signed}.{_encoded(issuer.sign(covered.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
