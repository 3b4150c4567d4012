"""What JWTs say, in the words of monitoring; loaded in operator mode.

Those of accounts and operators were verified when they came. One that cannot be read any more, as
a later version of this program may be stricter, is shown as it is, with nothing of what it says.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from jsctl.api.fields import Json
from jsctl.api.monitoring.accountz import AccountDetailz
from jsctl.api.times import format_time
from jsctl.auth.check import issues_of
from jsctl.auth.claims import Account, Body, Export, Operator, User
from jsctl.auth.token import Claims, TokenProblem, read_as
from jsctl.broker.login_options.operators import SECOND_NS, AccountClaims
from jsctl.dataclass import replace

B = TypeVar("B", bound=Body)


def operators(tokens: Iterable[str]) -> tuple[Json, ...]:
    """What the JWTs of operators say."""
    found: list[Json] = []
    for token in tokens:
        claims = _read(Operator, token)
        if claims is not None:
            found.append(claims.document())
    return tuple(found)


def with_claims(detail: AccountDetailz, known: AccountClaims, now_ns: int) -> AccountDetailz:
    """An account with what its JWT says besides what it was taken for; the exports of `detail` are
    those of the JWT, one by one, and others behind them."""
    detail = replace(detail, revoked_user=_times(known.revoked))
    claims = _read(Account, known.token)
    if claims is None:
        return detail
    issues = issues_of(claims, now_ns // SECOND_NS)
    return replace(
        detail,
        decoded_jwt=claims.document(),
        validation_result_jwt=tuple(
            {"description": one.text, "blocking": one.blocking, "time_check": one.of_time}
            for one in issues
        ),
        exports=tuple(_exports(detail.exports, claims.nats.exports)),
    )


def is_bearer(token: str) -> bool:
    """Whether the JWT of a user that was refused is all that somebody needs to be that user, once
    it is no longer refused."""
    claims = _read(User, token)
    return claims is not None and claims.nats.rules.bearer_token


def _exports(shown: tuple[Json, ...], said: tuple[Export, ...]) -> Iterator[Json]:
    """Who may import what needs a token is not told: whoever brings one."""
    yield from shown[len(said) :]  # Those that the system account has in any case.
    for row, one in zip(shown, said, strict=False):
        assert isinstance(row, dict)
        found = dict(row)
        if one.token_req:
            found.pop("approved_accounts", None)
            found["token_req"] = True
        if one.revocations:
            found["revoked_activations"] = dict(_times(one.revocations.items()))
        yield found


def _times(revoked: Iterable[tuple[str, int]]) -> dict[str, str]:
    return {key: format_time(until_s * SECOND_NS) for key, until_s in revoked}


def _read(kind: type[B], token: str) -> Claims[B] | None:
    try:
        return read_as(kind, token)
    except TokenProblem:
        return None
