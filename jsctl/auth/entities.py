"""Operators, their accounts and their users: claims with the keys that are known of them.

An entity is changed by `change`, which checks the new claims and signs them at once, so that what
is in memory is always what a store may keep.
"""

from collections.abc import Callable
from dataclasses import field, replace
from typing import Generic, TypeVar

from jsctl.api.codec import encode
from jsctl.auth.check import issues_of
from jsctl.auth.claims import (
    NO_LIMIT,
    UNLIMITED,
    Account,
    AccountLimits,
    Body,
    Head,
    Operator,
    OperatorLimits,
    User,
    UserPermissionLimits,
    UserScope,
)
from jsctl.auth.keys import KeyKind, KeyPair, KeyProblem, generate
from jsctl.auth.token import Claims, sign
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError

B = TypeVar("B", bound=Body)
Clock = Callable[[], int]
"""Seconds of the Unix epoch."""


@dataclass(slots=True)
class Entity(Generic[B]):
    """What operators, accounts and users have in common. `name` is that of its file."""

    name: str
    key: KeyPair
    token: str
    claims: Claims[B]
    modified: bool = False

    @property
    def subject(self) -> str:
        """Its public key."""
        return self.claims.head.sub

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        return self.claims.nats.generic.tags

    def signed(self, claims: Claims[B], signer: KeyPair, now_s: int) -> None:
        """Takes over new claims. Raises JsctlError for those that servers would refuse."""
        for issue in issues_of(claims, now_s):
            if issue.blocking or issue.of_time:
                raise JsctlError(issue.text)
        self.token, self.claims = sign(claims, signer, now_s)
        self.modified = True


@dataclass(slots=True)
class UserEntity(Entity[User]):
    """A user."""


@dataclass(slots=True)
class AccountEntity(Entity[Account]):
    """An account with its users; `signing_keys` are the pairs that are at hand."""

    signing_keys: list[KeyPair] = field(default_factory=list)
    users: list[UserEntity] = field(default_factory=list)
    removed: list[UserEntity] = field(default_factory=list)
    """Users whose files go when the store is written."""

    def user(self, name: str) -> UserEntity | None:
        """By name or public key."""
        return next((one for one in self.users if name in (one.name, one.subject)), None)

    def scope_of(self, user: UserEntity) -> UserScope | None:
        """The scope of the signing key that issued a user; None where there is none."""
        return self.claims.nats.scopes.get(user.claims.head.iss)

    def is_scoped(self, user: UserEntity) -> bool:
        """Whether a signing key of the account issued the user."""
        return user.claims.head.iss in self.claims.nats.scopes

    def pair_of(self, public: str) -> KeyPair:
        """The account's key or signing key with that public key. Raises KeyProblem."""
        for pair in (self.key, *self.signing_keys):
            if pair.public == public:
                return pair
        raise KeyProblem("key not found")


@dataclass(slots=True)
class OperatorEntity(Entity[Operator]):
    """An operator with its accounts, and the keys that the store is to gain and lose."""

    signing_keys: list[KeyPair] = field(default_factory=list)
    accounts: list[AccountEntity] = field(default_factory=list)
    added_keys: list[KeyPair] = field(default_factory=list)
    deleted_keys: list[str] = field(default_factory=list)
    stored: bool = False

    def account(self, name: str) -> AccountEntity | None:
        """By name or public key."""
        return next((one for one in self.accounts if name in (one.name, one.subject)), None)

    @property
    def system_account(self) -> AccountEntity | None:
        """The system account, if it is known."""
        subject = self.claims.nats.system_account
        return self.account(subject) if subject else None


class Issuer:
    """Makes and changes entities; `clock` says when."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def new_operator(self, name: str) -> OperatorEntity:
        """An operator of its own, with a new key."""
        key = generate(KeyKind.OPERATOR)
        head = Head(iss=key.public, sub=key.public, name=name)
        operator = OperatorEntity(name, key, "", Claims(head, Operator()), added_keys=[key])
        self.change_operator(operator, operator.claims.nats)
        return operator

    def change_operator(self, operator: OperatorEntity, nats: Operator) -> None:
        """New claims of an operator. Raises JsctlError."""
        operator.signed(replace(operator.claims, nats=nats), operator.key, self.clock())

    def new_operator_key(self, operator: OperatorEntity) -> KeyPair:
        """A signing key, which the operator then names."""
        key = generate(KeyKind.OPERATOR)
        nats = operator.claims.nats
        self.change_operator(operator, replace(nats, signing_keys=(*nats.signing_keys, key.public)))
        operator.added_keys.append(key)
        operator.signing_keys.append(key)
        return key

    def new_account(self, operator: OperatorEntity, name: str) -> AccountEntity:
        """An account without limits and without JetStream."""
        key = generate(KeyKind.ACCOUNT)
        unlimited = AccountLimits(
            imports=NO_LIMIT, exports=NO_LIMIT, wildcards=True, conn=NO_LIMIT, leaf=NO_LIMIT
        )
        limits = OperatorLimits(nats=UNLIMITED, account=unlimited)
        head = Head(iss=operator.key.public, sub=key.public, name=name)
        account = AccountEntity(name, key, "", Claims(head, Account(limits=limits)))
        self.change_account(operator, account, account.claims.nats)
        operator.added_keys.append(key)
        operator.accounts.append(account)
        return account

    def change_account(
        self,
        operator: OperatorEntity,
        account: AccountEntity,
        nats: Account,
        *,
        issuer: str = "",
        expires_s: int | None = None,
    ) -> None:
        """New claims of an account, by the key that signed the last ones or another one.

        Raises JsctlError.
        """
        head = account.claims.head
        head = head if expires_s is None else replace(head, exp=expires_s)
        issuer = issuer or head.iss
        for pair in (operator.key, *operator.signing_keys):
            if pair.public == issuer:
                break
        else:
            raise KeyProblem(f'operator signing key "{issuer}" is was not found')
        nats = replace(
            nats,
            exports=tuple(sorted(nats.exports, key=lambda one: one.subject)),
            imports=tuple(sorted(nats.imports, key=lambda one: one.subject)),
        )
        account.signed(Claims(head, nats), pair, self.clock())

    def new_account_key(
        self, operator: OperatorEntity, account: AccountEntity, scope: UserScope | None = None
    ) -> KeyPair:
        """A signing key of an account, with the rules of a scope if there is one."""
        key = generate(KeyKind.ACCOUNT)
        scopes = account.claims.nats.scopes
        scopes[key.public] = replace(scope, key=key.public) if scope else None
        self.set_scopes(operator, account, scopes)
        operator.added_keys.append(key)
        account.signing_keys.append(key)
        return key

    def set_scopes(
        self,
        operator: OperatorEntity,
        account: AccountEntity,
        scopes: dict[str, UserScope | None],
    ) -> None:
        """All signing keys of an account."""
        listed = tuple(encode(scope) if scope else key for key, scope in sorted(scopes.items()))
        self.change_account(operator, account, replace(account.claims.nats, signing_keys=listed))

    def new_user(
        self, operator: OperatorEntity, account: AccountEntity, name: str, signer: str = ""
    ) -> UserEntity:
        """A user without limits; one of a scoped signing key has the rules of its scope."""
        pair = account.pair_of(signer or account.subject)
        key = generate(KeyKind.USER)
        scope = account.claims.nats.scopes.get(pair.public)
        rules = UserPermissionLimits() if scope else UserPermissionLimits(nats=UNLIMITED)
        of_account = account.subject if pair.public != account.subject else ""
        nats = User(rules=rules, issuer_account=of_account)
        head = Head(iss=pair.public, sub=key.public, name=name)
        user = UserEntity(name, key, "", Claims(head, nats))
        self.change_user(account, user, nats)
        operator.added_keys.append(key)
        account.users.append(user)
        return user

    def change_user(
        self, account: AccountEntity, user: UserEntity, nats: User, *, expires_s: int | None = None
    ) -> None:
        """New claims of a user, by the key that signed the last ones. Raises JsctlError."""
        pair = account.pair_of(user.claims.head.iss)
        head = user.claims.head if expires_s is None else replace(user.claims.head, exp=expires_s)
        user.signed(Claims(head, nats), pair, self.clock())


def with_tags(
    tags: tuple[str, ...], add: tuple[str, ...], gone: tuple[str, ...]
) -> tuple[str, ...]:
    """Tags are lower case and each is there once. Raises JsctlError for an empty one."""
    for tag in add:
        if not tag.strip():
            raise JsctlError("string cannot be empty")
    found = list(tags)
    for tag in map(_tag, add):
        if tag not in found:
            found.append(tag)
    leaving = {_tag(word) for word in gone}
    return tuple(tag for tag in found if tag not in leaving)


def _tag(word: str) -> str:
    """Letter by letter, as Go does it: a letter stays one, wherever it stands."""
    return "".join(letter.lower()[:1] for letter in word.strip())
