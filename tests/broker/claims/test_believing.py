"""Whatever comes as a JWT is believed or not, and nothing else comes of it, in linear time."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.auth.keys import KeyKind, generate
from jsctl.broker.claims import verifying
from jsctl.broker.claims.accounts import resolve
from jsctl.broker.claims.rules import user_rules
from jsctl.broker.claims.verifying import NotBelieved
from jsctl.broker.login_options.operators import OperatorOptions
from tests.support.operators import written

NOW_S = 1_800_000_000
OPERATOR, ACCOUNT, USER = (
    generate(KeyKind.OPERATOR), generate(KeyKind.ACCOUNT), generate(KeyKind.USER),
)  # fmt: skip
OPTIONS = OperatorOptions(keys=(OPERATOR.public,))
READERS: tuple[Callable[[str], object], ...] = (
    verifying.operator,
    lambda token: verifying.account(token, OPTIONS, NOW_S),
    lambda token: verifying.user(token, NOW_S),
    lambda token: verifying.activation(token, NOW_S),
)
LETTERS = st.text("abcXYZ019-_.=+/ \u00e9\ud800\n", max_size=200)
KEYS = st.sampled_from(
    (
        *("type", "version", "imports", "exports", "limits", "signing_keys", "revocations"),
        *("mappings", "default_permissions", "trace", "authorization", "pub", "sub", "resp"),
        *("allow", "deny", "src", "times", "start", "end", "times_location", "subs", "payload"),
        *("conn", "tiered_limits", "kind", "template", "key", "subject", "account", "token"),
        *("name", "tags", "issuer_account", "weight", "service_latency", "sampling", "dest"),
        *("bearer_token", "allowed_connection_types", "new"),
    )
)
WORDS = ("", "x", "*", ">", "a.b", "{{name()}}", "service", USER.public, ACCOUNT.public)
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
PAIRS = ((OPERATOR, ACCOUNT), (ACCOUNT, USER), (OPERATOR, OPERATOR), (ACCOUNT, ACCOUNT))


def read_by_all(token: str) -> None:
    """Every reader believes it, or raises NotBelieved."""
    for read in READERS:
        try:
            read(token)
        except NotBelieved:
            continue
    found = resolve(OPTIONS, [(ACCOUNT.public, token)], NOW_S)
    assert len(found.accounts) + len(found.notes) >= 1


@given(LETTERS | st.text(max_size=300))
def test_any_text(token: str) -> None:
    read_by_all(token)


@given(st.lists(LETTERS, min_size=3, max_size=3))
def test_three_parts(parts: list[str]) -> None:
    read_by_all(".".join(parts))


@given(
    st.sampled_from(("operator", "account", "user", "activation")),
    st.dictionaries(KEYS, ANY, max_size=6),
    st.sampled_from(PAIRS),
    st.sampled_from((1, 2)),
)
def test_well_signed_nonsense(kind: str, said: dict[str, Any], keys: Any, version: int) -> None:
    issuer, subject = keys
    document: dict[str, object] = {"nats": {**said, "type": kind}}
    if version == 1:
        document["type"] = kind
    read_by_all(written(document, subject, issuer, version=version))


@given(st.dictionaries(st.sampled_from(("exp", "nbf", "iat", "sub", "iss", "name", "aud")), ANY))
def test_well_signed_heads(head: dict[str, Any]) -> None:
    read_by_all(written({"nats": {"type": "account"}, **head}, ACCOUNT, OPERATOR))


@given(st.dictionaries(KEYS, ANY, max_size=6))
def test_rules_of_whoever_is_believed(said: dict[str, Any]) -> None:
    token = written({"nats": {**said, "type": "user"}}, USER, ACCOUNT)
    try:
        claims = verifying.user(token, NOW_S)
    except NotBelieved:
        return
    assert user_rules(claims.nats.rules) is not None


LONG = {
    "a text": "x" * (1 << 20),
    "dots": "." * (1 << 20),
    "more than a JWT may have": "x" * (3 << 20),
    "a long head": f"{'W' * (1 << 19)}.e30.x",
    "a long body": f"e30.{'W' * (1 << 19)}.x",
    "a long signature": f"e30.e30.{'W' * (1 << 19)}",
    "many parts": "e30" + ".W1tb" * 100_000,
    "deep lists": f"{'W1tb' * 100_000}.{'W1tb' * 100_000}.x",
}


@pytest.mark.parametrize("what", list(LONG))
def test_long_ones_take_no_longer_than_they_are(what: str) -> None:
    began = time.perf_counter()
    read_by_all(LONG[what])
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize("depth", [100, 900])
def test_deep_json_that_is_well_signed(depth: int) -> None:
    deep: Any = []
    for _ in range(depth):
        deep = [deep]
    read_by_all(written({"nats": {"type": "user", "new": deep}}, USER, ACCOUNT))
