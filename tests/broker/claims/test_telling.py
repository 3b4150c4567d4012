"""What JWTs say, in the words of monitoring."""

from typing import Any

import pytest

from jsctl.api.monitoring.accountz import AccountDetailz
from jsctl.auth.claims import UNLIMITED, Account, Export, Head, Operator, User, UserPermissionLimits
from jsctl.auth.keys import KeyKind, generate
from jsctl.auth.token import Claims, sign
from jsctl.broker.claims.telling import is_bearer, operators, with_claims
from jsctl.broker.login_options.operators import SECOND_NS, AccountClaims

NOW_S = 1_700_000_000
OPERATOR, ACCOUNT, USER = map(generate, (KeyKind.OPERATOR, KeyKind.ACCOUNT, KeyKind.USER))
EXPORTS = (
    Export(name="all", subject="all.>", type_="stream"),
    Export(name="some", subject="some.>", type_="stream", token_req=True, revocations={"*": NOW_S}),
)
SHOWN: tuple[dict[str, Any], ...] = (
    {"subject": "all.>", "type": "stream"},
    {"subject": "some.>", "type": "stream", "approved_accounts": ["A"]},
    {"subject": "$SYS.X", "type": "service"},
)


def account_token(exp_s: int = 0) -> str:
    body = Account(exports=EXPORTS, revocations={USER.public: NOW_S})
    claims = Claims(Head(name="A", sub=ACCOUNT.public, exp=exp_s), body)
    return sign(claims, OPERATOR, NOW_S - 10)[0]


def user_token(*, bearer: bool) -> str:
    body = User(rules=UserPermissionLimits(nats=UNLIMITED, bearer_token=bearer))
    return sign(Claims(Head(name="U", sub=USER.public), body), ACCOUNT, NOW_S)[0]


def told(token: str, now_s: int = NOW_S) -> AccountDetailz:
    known = AccountClaims(token=token, revoked=((USER.public, NOW_S),))
    return with_claims(AccountDetailz(account_name="A", exports=SHOWN), known, now_s * SECOND_NS)


def by_subject(exports: tuple[Any, ...]) -> dict[str, Any]:
    return {one["subject"]: one for one in exports}


def test_what_an_operator_says_is_told_and_nothing_of_one_that_cannot_be_read() -> None:
    token, signed = sign(
        Claims(Head(name="O", sub=OPERATOR.public), Operator(system_account=ACCOUNT.public)),
        OPERATOR,
        NOW_S,
    )
    assert operators((token, "no JWT", account_token())) == (signed.document(),)


def test_an_account_is_told_with_all_that_its_jwt_says() -> None:
    found = told(account_token())
    assert isinstance(found.decoded_jwt, dict)
    assert found.decoded_jwt["name"] == "A"
    assert found.revoked_user == {USER.public: "2023-11-14T22:13:20Z"}


def test_exports_are_told_as_the_jwt_has_them_and_others_as_they_were() -> None:
    assert by_subject(told(account_token()).exports) == {
        "all.>": SHOWN[0],
        "some.>": {
            "subject": "some.>",
            "type": "stream",
            "token_req": True,
            "revoked_activations": {"*": "2023-11-14T22:13:20Z"},
        },
        "$SYS.X": SHOWN[2],
    }


def test_what_is_wrong_with_a_jwt_by_now_is_told() -> None:
    token = account_token(exp_s=NOW_S + 5)
    expired = {"description": "claim is expired", "blocking": False, "time_check": True}
    assert expired not in told(token).validation_result_jwt
    assert expired in told(token, NOW_S + 6).validation_result_jwt


def test_of_a_jwt_that_cannot_be_read_any_more_is_told_what_it_was_taken_for() -> None:
    found = told("no JWT")
    assert found.decoded_jwt is None
    assert found.exports == SHOWN
    assert found.revoked_user


@pytest.mark.parametrize(
    ("token", "bearer"),
    [(user_token(bearer=True), True), (user_token(bearer=False), False), ("no JWT", False)],
)
def test_a_bearer_is_known_by_the_jwt(token: str, bearer: bool) -> None:
    assert is_bearer(token) is bearer
