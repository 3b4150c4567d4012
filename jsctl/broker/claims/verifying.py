"""Whether a JWT is to be believed: who signed it, and whether what it says makes sense now."""

from typing import TypeVar

from jsctl.auth.check import issues_of
from jsctl.auth.claims import Account, Activation, Body, Operator, User
from jsctl.auth.keys import KeyKind, kind_of
from jsctl.auth.token import Claims, TokenProblem, read_as
from jsctl.broker.login_options.operators import OperatorOptions

B = TypeVar("B", bound=Body)
NOT_VALID = "account validation failed"


class NotBelieved(Exception):
    """Why a JWT does not count."""


def operator(token: str) -> Claims[Operator]:
    """An operator's own. Raises NotBelieved."""
    claims = _read(Operator, token)
    if kind_of(claims.head.sub) is not KeyKind.OPERATOR:
        raise NotBelieved("its subject is no operator")
    return claims


def account(token: str, options: OperatorOptions, now_s: int) -> Claims[Account]:
    """The JWT of an account that a trusted operator signed. Raises NotBelieved."""
    claims = _read(Account, token)
    if claims.head.iss not in options.keys:
        raise NotBelieved(f"{NOT_VALID}: its issuer is no trusted operator")
    if kind_of(claims.head.sub) is not KeyKind.ACCOUNT:
        raise NotBelieved(f"{NOT_VALID}: its subject is no account")
    _makes_sense(claims, now_s, NOT_VALID)
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
    claims = _read(Activation, token)
    _makes_sense(claims, now_s, "activation not valid")
    return claims


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
