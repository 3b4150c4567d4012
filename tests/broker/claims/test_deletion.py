"""An operator's order to delete accounts."""

import pytest

from jsctl.auth.keys import KeyKind, generate
from jsctl.broker.claims.verifying import NotBelieved, deletion
from jsctl.broker.login_options.operators import OperatorOptions, ResolverOptions
from jsctl.dataclass import replace
from tests.support.resolver_world import ResolverWorld

WORLD = ResolverWorld()
ACCOUNT = generate(KeyKind.ACCOUNT).public
OPTIONS = OperatorOptions(
    keys=(WORLD.pair.public,),
    system_account=WORLD.system.public,
    resolver=ResolverOptions(may_delete=True),
)
LOCKED = replace(OPTIONS, resolver=ResolverOptions())


def test_an_order_names_accounts() -> None:
    order = WORLD.deletion(ACCOUNT, ACCOUNT).decode()
    assert deletion(order, OPTIONS) == (ACCOUNT, ACCOUNT)
    assert deletion(WORLD.deletion().decode(), OPTIONS) == ()


@pytest.mark.parametrize(
    ("order", "why", "options"),
    [
        (WORLD.deletion(ACCOUNT), "delete must be enabled", LOCKED),
        (WORLD.deletion(ACCOUNT, by=generate(KeyKind.OPERATOR)), "not trusted", OPTIONS),
        (WORLD.deletion(WORLD.system.public), "not allowed to delete system", OPTIONS),
        (WORLD.deletion(said="x"), "malformed request", OPTIONS),
        (WORLD.deletion(said=[1]), "malformed request", OPTIONS),
        (WORLD.deletion(WORLD.pair.public), "malformed request", OPTIONS),
        (WORLD.deletion(ACCOUNT)[:-4] + b"AAAA", "signature", OPTIONS),
        (b"rubbish", "expected 3 chunks", OPTIONS),
        (b"e30.e30.e30", "not supported type", OPTIONS),
        (WORLD.account(generate(KeyKind.ACCOUNT)).encode(), "not self signed", OPTIONS),
    ],
)
def test_what_is_none_is_refused(order: bytes, why: str, options: OperatorOptions) -> None:
    with pytest.raises(NotBelieved, match=why):
        deletion(order.decode(), options)
