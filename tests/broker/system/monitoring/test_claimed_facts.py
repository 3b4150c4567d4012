"""What pages and answers tell in operator mode, where time or a refusal decides it."""

import json

import pytest

from jsctl.api.monitoring.connz import ConnzOptions
from jsctl.auth.claims import UNLIMITED, Head, User, UserPermissionLimits
from jsctl.auth.keys import KeyKind, generate
from jsctl.auth.token import Claims, sign
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.linking.link_counts import LinkTraffic
from jsctl.broker.login_options.operators import SECOND_NS, AccountClaims
from jsctl.broker.options import AccountOptions
from jsctl.broker.system.monitoring.connection_facts import account_facts
from jsctl.broker.system.monitoring.connections import conn_info
from jsctl.broker.system.monitoring.view import ConnFacts
from jsctl.broker.system.requests import Requester, SysReply, SysRequest, SysServices
from jsctl.dataclass import replace
from tests.broker.system.monitoring.conftest import FakeView

ACCOUNT, USER = generate(KeyKind.ACCOUNT), generate(KeyKind.USER)
CLOSED = ConnFacts(cid=5, host="h", port=1, start_ns=1, last_ns=1, stop_ns=2, account="$G")


def token(*, bearer: bool) -> str:
    rules = UserPermissionLimits(nats=UNLIMITED, bearer_token=bearer)
    return sign(Claims(Head(name="U", sub=USER.public), User(rules=rules)), ACCOUNT, 5)[0]


@pytest.mark.parametrize(("expires_s", "expired"), [(0, False), (11, False), (10, True)])
def test_an_account_is_expired_when_its_time_is_over(expires_s: int, expired: bool) -> None:
    claims = AccountClaims(name="people call it so", expires_s=expires_s)
    account = Account(AccountOptions(name="A", claims=claims), "", is_system=False)
    found = account_facts(account, 1, LinkTraffic(), 10 * SECOND_NS, jetstream=False)
    assert found.expired is expired
    assert found.tag == "people call it so"


def test_an_account_without_a_name_for_people_has_its_own() -> None:
    account = Account(AccountOptions(name="A", claims=AccountClaims()), "", is_system=False)
    assert account.tag == "A"


@pytest.mark.parametrize("bearer", [True, False])
@pytest.mark.parametrize("known", [True, False], ids=["known", "refused"])
def test_the_jwt_of_a_bearer_is_not_shown(view: FakeView, bearer: bool, known: bool) -> None:
    conn = replace(CLOSED, jwt=token(bearer=bearer), bearer=bearer if known else None)
    shown = conn_info(view, conn, ConnzOptions(auth=True)).jwt
    assert shown == ("" if bearer else conn.jwt)


def test_who_has_not_logged_in_is_in_no_account_once_it_is_gone(view: FakeView) -> None:
    options = ConnzOptions(auth=True)
    assert conn_info(view, CLOSED, options).name_tag == ""
    assert conn_info(view, replace(CLOSED, stop_ns=0), options).name_tag == "$G"


@pytest.mark.parametrize(
    ("left_ns", "told_ns"),
    [(90 * SECOND_NS + 5, 90 * SECOND_NS), (SECOND_NS - 1, None), (-SECOND_NS, None)],
)
def test_users_are_told_how_many_seconds_they_have(
    view: FakeView, left_ns: int, told_ns: int | None
) -> None:
    services = SysServices(lambda: "id", system_account="$SYS")
    who = Requester("A", "u", expires_ns=view.now_ns + left_ns)
    answer = services.serve(view, SysRequest("$SYS.REQ.USER.INFO", "r", b"", b"", who))
    assert isinstance(answer, SysReply)
    assert json.loads(answer.payload)["data"].get("expires") == told_ns
