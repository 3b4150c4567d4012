"""Which of two JWTs of an account counts, and when one begins or ceases to."""

from jsctl.auth.claims import Account, Head, Import
from jsctl.auth.keys import KeyKind, generate
from jsctl.auth.token import Claims, sign
from jsctl.broker.claims.ages import is_newer, next_change_s
from tests.support.operators import limits
from tests.support.resolver_world import ResolverWorld

WORLD = ResolverWorld()
ACCOUNT = generate(KeyKind.ACCOUNT)
OLD = WORLD.account(ACCOUNT, issued_s=1000)
NEW = WORLD.account(ACCOUNT, issued_s=2000)
OTHER = WORLD.account(ACCOUNT, issued_s=1000, name="other")


def test_the_newer_one_counts() -> None:
    assert is_newer(NEW, OLD) and not is_newer(OLD, NEW)
    assert is_newer(OTHER, OLD), "of two of one second it is what comes"
    assert not is_newer(OLD, OLD) and not is_newer(f"{OLD}\n", OLD)


def test_what_cannot_be_read_is_older_than_all() -> None:
    assert is_newer(OLD, "") and is_newer(OLD, "rubbish")
    assert not is_newer("rubbish", OLD) and not is_newer("", OLD)


def test_times_at_which_something_changes() -> None:
    giver = generate(KeyKind.ACCOUNT)
    token = WORLD.activation(giver, ACCOUNT, "s", expires_s=300)
    broken = Import(subject="s", account=giver.public, type_="service", token="rubbish")
    wanted = Import(subject="s", account=giver.public, type_="service", token=token)
    said = Account(limits=limits(), imports=(wanted, broken))
    imports = WORLD.account(ACCOUNT, said, expires_s=500)
    head = Head(sub=ACCOUNT.public, nbf=200)
    later = sign(Claims(head, Account(limits=limits())), WORLD.pair, 1)[0]
    tokens = [OLD, "rubbish", imports, later]
    assert next_change_s(tokens, 100) == 200
    assert next_change_s(tokens, 200) == 300
    assert next_change_s(tokens, 300) == 501, "it counts in the second that it names"
    assert next_change_s(tokens, 501) == 0
