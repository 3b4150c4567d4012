"""What servers tell each other of the JWTs that they have."""

from hashlib import sha256

from jsctl.auth.keys import KeyKind, generate
from jsctl.broker.login_options.operators import ResolverOptions
from jsctl.broker.system.resolver.exchange import (
    KnownTokens,
    hash_of,
    lasting,
    packed,
    unpacked,
)
from tests.support.resolver_world import ResolverWorld

WORLD = ResolverWorld()
PAIRS = [generate(KeyKind.ACCOUNT) for _ in range(3)]
TOKENS = {one.public: WORLD.account(one) for one in PAIRS[:2]}
ENDS = WORLD.account(PAIRS[2], expires_s=500)
ALL = {**TOKENS, PAIRS[2].public: ENDS, "A": "rubbish", "B": TOKENS[PAIRS[0].public]}


def test_what_nobody_may_have_is_not_told() -> None:
    assert dict(lasting(ALL, 501)) == TOKENS
    assert dict(lasting(ALL, 500)) == {**TOKENS, PAIRS[2].public: ENDS}


def test_the_hash_is_that_of_all_in_any_order() -> None:
    both = [int.from_bytes(sha256(one.encode()).digest(), "big") for one in TOKENS.values()]
    assert hash_of(TOKENS, 501) == (both[0] ^ both[1]).to_bytes(32, "big")
    assert hash_of(dict(reversed(ALL.items())), 501) == hash_of(TOKENS, 501)
    assert hash_of({}, 0) == bytes(32)


def test_who_has_the_same_is_told_nothing_else_everything() -> None:
    assert packed(ALL, hash_of(TOKENS, 501), 501) == [b""]
    *lines, end = packed(ALL, b"another", 501)
    assert end == b"" and dict(pair for one in lines for pair in unpacked(one)) == TOKENS


def test_lines_that_are_none_are_passed_over() -> None:
    assert list(unpacked(b"a|b\n\nc\nd|e|f\n|\n\xff|g")) == [("a", "b"), ("", ""), ("\ufffd", "g")]


def test_tokens_follow_the_options() -> None:
    known = KnownTokens()
    first = ResolverOptions(known=(("a", "1"),))
    assert known.of(first) is known.of(first)
    assert known.of(first) == {"a": "1"}
    assert known.of(ResolverOptions(known=(("b", "2"),))) == {"b": "2"}
