"""A world of JWTs with something of everything that servers show: an operator with a signing key,
accounts that trade with each other, and users of each kind of key."""

from dataclasses import field
from pathlib import Path

from jsctl.api.codec import encode
from jsctl.auth.claims import (
    NO_LIMIT,
    UNLIMITED,
    Account,
    AccountLimits,
    Activation,
    Body,
    Export,
    Head,
    Import,
    Info,
    JetStreamLimits,
    MsgTrace,
    NatsLimits,
    Operator,
    OperatorLimits,
    Permission,
    Permissions,
    ResponsePermission,
    ServiceLatency,
    User,
    UserPermissionLimits,
    UserScope,
    WeightedMapping,
)
from jsctl.auth.claims import Generic as Common
from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.auth.token import Claims, sign
from jsctl.dataclass import dataclass
from tests.support.operators import FREE, Member, now_s
from tests.support.wire_client import WireClient

DAY_S = 86_400
BEARER = UserPermissionLimits(nats=UNLIMITED, bearer_token=True)
ROLE = "service"


@dataclass(frozen=True, slots=True)
class Person:
    """A user: its JWT, and its key."""

    name: str
    token: str
    key: KeyPair
    bearer: bool = False

    def login(self, challenge: str) -> dict[str, object]:
        """What its CONNECT says."""
        said: dict[str, object] = {
            "jwt": self.token, "name": self.name, "lang": "test", "version": "1.2.3",
        }  # fmt: skip
        if not self.bearer:
            said["sig"] = Member(self.token, self.key).signature(challenge)
        return said

    def connect(self, url: str) -> WireClient:
        """A connection of it."""
        return WireClient(url, self.login)


def limits(*, stores: bool = True) -> OperatorLimits:
    """Those of an account."""
    no = NO_LIMIT
    return OperatorLimits(
        nats=UNLIMITED,
        account=AccountLimits(no, no, wildcards=True, conn=100, leaf=5),
        jetstream=JetStreamLimits(1 << 20, 1 << 30, 10, 100) if stores else JetStreamLimits(),
    )


@dataclass(slots=True)
class ClaimedWorld:
    """Who there is. `config` is for a server; it can be given to several."""

    now_s: int = field(default_factory=now_s)
    people: dict[str, Person] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Public key -> what it is called here."""
    keys: dict[str, KeyPair] = field(default_factory=dict)
    """Signing keys of APP, and the key of a user that was revoked."""
    accounts: dict[str, KeyPair] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """Public key of an account -> its JWT."""
    signed: dict[str, str] = field(default_factory=dict)
    """All JWTs -> the names in them."""
    operator_token: str = ""

    def __post_init__(self) -> None:
        operator, signing = self._key("O", KeyKind.OPERATOR), self._key("OS", KeyKind.OPERATOR)
        for name in ("SYS", "APP", "BIZ", "HALF", "IDLE", "AWAY"):
            self.accounts[name] = self._key(name, KeyKind.ACCOUNT)
        self.operator_token = self._signed(
            "O",
            operator,
            operator,
            Operator(
                signing_keys=(signing.public,),
                system_account=self.accounts["SYS"].public,
                operator_service_urls=("nats://127.0.0.1:4222",),
                generic=Common(tags=("owner",)),
            ),
        )
        for name in ("plain", "role", "bearers"):
            self.keys[name] = self._key(f"APP.{name}", KeyKind.ACCOUNT)
        self.keys["gone"] = self._key("gone", KeyKind.USER)
        self._account("SYS", operator, Account(limits=limits(stores=False)))
        self._account("APP", signing, self._app())
        self._account("BIZ", operator, self._biz())
        self._account("HALF", operator, self._half())
        self._account("IDLE", operator, Account(limits=limits(stores=False)))
        self._users()

    def _key(self, name: str, kind: KeyKind) -> KeyPair:
        pair = generate(kind)
        self.names[pair.public] = name
        return pair

    def _signed(
        self, name: str, subject: KeyPair, issuer: KeyPair, body: Body, exp_s: int = 0
    ) -> str:
        claims = Claims(Head(name=name, sub=subject.public, exp=exp_s), body)
        token, _ = sign(claims, issuer, self.now_s)
        self.signed[token] = name
        return token

    def _account(self, name: str, issuer: KeyPair, said: Account) -> None:
        pair = self.accounts[name]
        self.tokens[pair.public] = self._signed(f"{name}-account", pair, issuer, said)

    def _app(self) -> Account:
        template = UserPermissionLimits(
            Permissions(
                Permission(("svc.{{name()}}.>", "team.{{tag(team)}}", "$SYS.REQ.USER.INFO")),
                Permission(("_INBOX.>",), ("_INBOX.secret",)),
                ResponsePermission(5, 60_000_000_000),
            ),
            nats=NatsLimits(100, NO_LIMIT, 4096),
        )
        keys = {name: pair.public for name, pair in self.keys.items()}
        role = UserScope(key=keys["role"], role=ROLE, template=template, description="a role")
        bearers = UserScope(key=keys["bearers"], role="bearers", template=BEARER)
        return Account(
            limits=limits(),
            signing_keys=(keys["plain"], encode(role), encode(bearers)),
            revocations={keys["gone"]: self.now_s + DAY_S, "*": self.now_s - DAY_S},
            default_permissions=Permissions(pub=Permission(deny=("forbidden.>",))),
            exports=(
                Export(
                    name="add",
                    subject="add.*",
                    type_="service",
                    response_type="Singleton",
                    service_latency=ServiceLatency(100, "latency.add"),
                    info=Info("adds", "https://example.com"),
                ),
                Export(
                    name="many", subject="many", type_="service", response_type="Stream",
                    response_threshold=5_000_000_000,
                ),
                Export(
                    name="own", subject="own.*.get", type_="service", account_token_position=2
                ),
                Export(
                    name="events",
                    subject="events.>",
                    type_="stream",
                    token_req=True,
                    revocations={self.accounts["IDLE"].public: self.now_s},
                ),
                Export(name="open", subject="open.>", type_="stream"),
            ),
            mappings={
                "orders.*": (
                    WeightedMapping("orders.a.{{wildcard(1)}}", 60),
                    WeightedMapping("orders.b.{{wildcard(1)}}", 40),
                ),
                "old": (WeightedMapping("new"),),
            },
            trace=MsgTrace("traces.here", 100),
            info=Info("an application", "https://example.com/app"),
            generic=Common(tags=("env:test", "team:core")),
        )  # fmt: skip

    def _biz(self) -> Account:
        app, biz = self.accounts["APP"], self.accounts["BIZ"]
        activation = self._signed(
            "BIZ may", biz, app, Activation(subject="events.>", kind="stream")
        )
        return Account(
            limits=limits(stores=False),
            imports=(
                Import(
                    name="add", subject="add.one", account=app.public, local_subject="plus",
                    type_="service", share=True,
                ),
                Import(
                    name="hidden", subject="add.two", account=app.public, local_subject="hidden",
                    type_="service",
                ),
                Import(
                    name="old", subject="many", account=app.public, to="", type_="service"
                ),
                Import(
                    name="own", subject=f"own.{biz.public}.get", account=app.public,
                    local_subject="mine", type_="service",
                ),
                Import(
                    name="events", subject="events.>", account=app.public, token=activation,
                    local_subject="from.app.>", type_="stream",
                ),
                Import(name="open", subject="open.>", account=app.public, to="x", type_="stream"),
            ),
            generic=Common(tags=("paying",)),
        )  # fmt: skip

    def _half(self) -> Account:
        """It lacks an account, and a token."""
        app, away = self.accounts["APP"].public, self.accounts["AWAY"].public
        return Account(
            limits=limits(stores=False),
            imports=(
                Import(name="a", subject="open.>", account=app, to="x", type_="stream"),
                Import(name="b", subject="events.>", account=app, to="y", type_="stream"),
                Import(name="c", subject="z", account=away, local_subject="z", type_="service"),
            ),
        )

    def _users(self) -> None:
        ruled = UserPermissionLimits(
            Permissions(
                Permission((">",), ("secret.>", "other")),
                Permission((">",), ("hidden", "jobs workers")),
                ResponsePermission(3, 1_000_000_000),
            ),
            nats=UNLIMITED,
        )
        self._user("admin", "SYS")
        self._user("owner", "APP", tags=("a", "b"))
        self._user("ruled", "APP", rules=ruled, exp_s=self.now_s + DAY_S)
        self._user("signed", "APP", issuer="plain", tags=("by-a-key",))
        empty, tags = UserPermissionLimits(), ("team:red", "team:blue")
        self._user("scoped", "APP", issuer="role", tags=tags, rules=empty)
        self._user("bearer", "APP", rules=BEARER)
        self._user("carrier", "APP", issuer="bearers", rules=empty, bearer=True)
        self._user("buyer", "BIZ", tags=("first",))
        self._user("partly", "HALF")
        self._user("gone", "APP", pair=self.keys["gone"])

    def _user(
        self,
        name: str,
        account: str,
        *,
        pair: KeyPair | None = None,
        issuer: str = "",
        rules: UserPermissionLimits = FREE,
        tags: tuple[str, ...] = (),
        exp_s: int = 0,
        bearer: bool = False,
    ) -> None:
        pair, owner = pair or self._key(name, KeyKind.USER), self.accounts[account]
        said = User(
            rules=rules,
            issuer_account=owner.public if issuer else "",
            generic=Common(tags=tags),
        )
        signer = self.keys[issuer] if issuer else owner
        token = self._signed(f"{name}-user", pair, signer, said, exp_s)
        self.people[name] = Person(name, token, pair, bearer or rules.bearer_token)

    def brief(self, last_s: int = 2) -> Person:
        """A user whose JWT will have expired so soon."""
        self._user("brief", "APP", exp_s=now_s() + last_s)
        return self.people["brief"]

    def named(self, text: str) -> str:
        """The text with names in the place of keys and JWTs."""
        for token, name in self.signed.items():
            text = text.replace(token, f"<JWT of {name}>")
        for key, name in self.names.items():
            text = text.replace(key, f"<{name}>")
        return text

    @property
    def config(self) -> str:
        """Of a server with it."""
        preload = "\n".join(f"{name}: {token}" for name, token in self.tokens.items())
        return (
            f"operator: {self.operator_token}\nresolver: MEMORY\n"
            f"resolver_preload {{\n{preload}\n}}\n"
        )

    def credentials(self, name: str, directory: Path) -> Path:
        """The credentials file of a user."""
        person, path = self.people[name], directory / f"{name}.creds"
        path.write_text(Member(person.token, person.key).credentials)
        return path
