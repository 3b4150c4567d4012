"""Whether a JWT is to be believed: who signed it, and whether what it says makes sense now."""

from functools import lru_cache
from typing import TypeVar

from jsctl.auth.check import issues_of
from jsctl.auth.claims import Account, Activation, Body, Operator, User
from jsctl.auth.keys import KeyKind, kind_of
from jsctl.auth.token import Claims, TokenProblem, read_as, read_plain
from jsctl.broker.login_options.operators import OperatorOptions
from jsctl.broker.nkey import KeyKind as ServerKeyKind
from jsctl.broker.nkey import decode
from jsctl.dataclass import dataclass

B = TypeVar("B", bound=Body)
NOT_VALID = "account validation failed"
READ_KEPT = 16_384
"""JWTs whose signature need not be verified again."""


class NotBelieved(Exception):
    """Why a JWT does not count."""

    def __init__(self, text: str, subject: str = "") -> None:
        """`subject` is who it is of, as far as it could be read."""
        super().__init__(text)
        self.subject = subject


def operator(token: str) -> Claims[Operator]:
    """An operator's own. Raises NotBelieved."""
    claims = _read(Operator, token)
    if kind_of(claims.head.sub) is not KeyKind.OPERATOR:
        raise NotBelieved("its subject is no operator")
    return claims


def account(token: str, options: OperatorOptions, now_s: int) -> Claims[Account]:
    """The JWT of an account that a trusted operator signed. Raises NotBelieved."""
    said = account_said(token)
    claims = said.claims
    if claims.head.iss not in options.keys:
        raise NotBelieved(f"{NOT_VALID}: its issuer is no trusted operator")
    wrong = said.wrong or said.untimely(now_s)
    if wrong:
        raise NotBelieved(f"{NOT_VALID}: {wrong}")
    return claims


def user(token: str, now_s: int) -> Claims[User]:
    """The JWT of a user, of which nobody knows yet whether its issuer may sign users. Raises
    NotBelieved."""
    claims = _read(User, token)
    if kind_of(claims.head.sub) is not KeyKind.USER:
        raise NotBelieved("its subject is no user")
    _makes_sense(claims, now_s, "user JWT no longer valid")
    return claims


def is_of_user(token: str) -> bool:
    """Whether a text is the JWT of a user at all, signed by whoever it says, of whatever time."""
    try:
        _read(User, token)
    except NotBelieved:
        return False
    return True


def activation(token: str, now_s: int) -> Claims[Activation]:
    """What lets an account import. Raises NotBelieved."""
    claims = activation_said(token)
    _makes_sense(claims, now_s, "activation not valid")
    return claims


def read_account(token: str) -> "Said":
    """What the JWT of an account says, whoever signed it, and whenever it is for. Raises
    NotBelieved for one that its issuer did not sign, or that is not of an account."""
    claims = _read(Account, token)
    wrong = next((one.text for one in issues_of(claims, 0) if one.blocking), "")
    if kind_of(claims.head.sub) is not KeyKind.ACCOUNT:
        wrong = "its subject is no account"
    return Said(claims, wrong)


@lru_cache(READ_KEPT)
def account_said(token: str) -> "Said":
    """The same of a JWT that a server has, which is read again and again as all accounts are looked
    at when one changes: it is kept. What anybody sends is not for this one."""
    return read_account(token)


@lru_cache(READ_KEPT)
def activation_said(token: str) -> Claims[Activation]:
    """The same of what lets an account import."""
    return _read(Activation, token)


def deletion(token: str, options: OperatorOptions) -> tuple[str, ...]:
    """The accounts that an operator wants to be gone. Raises NotBelieved, which names who says
    so where that is known."""
    try:
        head, said = read_plain(token)
    except TokenProblem as error:
        raise NotBelieved(str(error)) from None
    if not options.resolver.may_delete:
        raise NotBelieved("delete must be enabled in server config", head.sub)
    if head.sub != head.iss:
        raise NotBelieved("not self signed", head.sub)
    if head.iss not in options.keys:
        raise NotBelieved("not trusted", head.sub)
    accounts = said.get("accounts")
    if not isinstance(accounts, list):
        raise NotBelieved("malformed request", head.sub)
    for one in accounts:
        if not isinstance(one, str) or decode(one, ServerKeyKind.ACCOUNT) is None:
            raise NotBelieved("malformed request", head.sub)
        if one == options.system_account:
            raise NotBelieved("not allowed to delete system account", head.sub)
    return tuple(accounts)


@dataclass(frozen=True, slots=True)
class Said:
    """What the JWT of an account says, and what never made sense of it."""

    claims: Claims[Account]
    wrong: str

    def untimely(self, now_s: int) -> str:
        """Why it does not count now; empty: it does."""
        head = self.claims.head
        if 0 < head.exp < now_s:
            return "claim is expired"
        return "claim is not yet valid" if head.nbf > max(0, now_s) else ""


def _read(kind: type[B], token: str) -> Claims[B]:
    try:
        return read_as(kind, token)
    except TokenProblem as error:
        raise NotBelieved(str(error)) from None


def _makes_sense(claims: Claims[B], now_s: int, what: str) -> None:
    """Raises NotBelieved for what is expired as well as for what never made sense."""
    for issue in issues_of(claims, now_s):
        if issue.blocking or issue.of_time:
            raise NotBelieved(f"{what}: {issue.text}")
