"""JWTs: exact bytes, both versions, and what is not believed."""

import base64
import json
from dataclasses import replace

import pytest

from jsctl.api.codec import dumps
from jsctl.auth.claims import Account, Generic, Head, Operator, User
from jsctl.auth.entities import Issuer
from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.auth.token import (
    Claims,
    TokenProblem,
    credentials,
    read,
    read_as,
    sign,
    undecorated,
)
from jsctl.errors import JsctlError

NOW_S = 1_700_000_000
OPERATOR = generate(KeyKind.OPERATOR, lambda count: bytes(range(count)))
HEADER = '{"typ":"JWT","alg":"ed25519-nkey"}'


def payload(token: str) -> bytes:
    part = token.split(".")[1]
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def forged(
    document: object, pair: KeyPair, header: str = '{"typ":"JWT","alg":"ed25519-nkey"}'
) -> str:
    parts = (header.encode(), json.dumps(document).encode())
    text = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
    signature = base64.urlsafe_b64encode(pair.sign(text.encode())).rstrip(b"=").decode()
    return f"{text}.{signature}"


def test_the_bytes_are_those_of_the_reference_implementation() -> None:
    head = Head(sub=OPERATOR.public, name="<O>")
    token, claims = sign(Claims(head, Operator(system_account="A&B")), OPERATOR, NOW_S)
    assert payload(token) == (
        b'{"jti":"' + claims.head.jti.encode() + b'","iat":1700000000,"iss":"'
        + OPERATOR.public.encode() + b'","name":"\\u003cO\\u003e","sub":"'
        + OPERATOR.public.encode()
        + b'","nats":{"system_account":"A\\u0026B","type":"operator","version":2}}'
    )  # fmt: skip
    assert len(claims.head.jti) == 52
    assert read(token) == claims
    assert dumps(claims.document()) == payload(token)


def test_keys_of_newer_versions_are_kept() -> None:
    head = {"sub": OPERATOR.public, "iss": OPERATOR.public, "iat": 1}
    nats = {"type": "operator", "version": 2, "later": {"a": [1]}}
    found = read_as(Operator, forged({**head, "nats": nats}, OPERATOR))
    again, _ = sign(found, OPERATOR, NOW_S)
    assert json.loads(payload(again))["nats"]["later"] == {"a": [1]}


def test_the_first_version_is_read_with_the_fields_where_they_are_now() -> None:
    account, user = generate(KeyKind.ACCOUNT), generate(KeyKind.USER)
    document = {
        "sub": user.public,
        "iss": account.public,
        "type": "user",
        "tags": ["old"],
        "issuer_account": account.public,
        "nats": {"pub": {"allow": ["a"]}, "sub": {}, "src": "10.0.0.0/8, 192.168.0.0/16"},
    }
    text = forged(document, account)
    head, body, _ = text.split(".")
    signature = base64.urlsafe_b64encode(account.sign(body.encode())).rstrip(b"=").decode()
    found = read_as(User, f"{head}.{body}.{signature}")
    assert found.nats.generic == Generic(("old",), "user", 1)
    assert found.nats.rules.nats.subs == -1
    assert found.nats.rules.limits.src == ("10.0.0.0/8", "192.168.0.0/16")
    with pytest.raises(TokenProblem, match="V1 signature"):
        read(text)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda token: token[:-4] + "AAAA", "claim failed V2 signature verification"),
        (lambda token: token.replace(".", "", 1), "expected 3 chunks"),
        (lambda token: "!" + token, "illegal base64 data at input byte 0"),
        (lambda token: "x" * 2_000_000, "token too large"),
        (lambda token: "", "expected 3 chunks"),
        (lambda token: token.rpartition(".")[0] + ".A", "illegal base64 data at input byte 0"),
    ],
)
def test_what_is_no_jwt_is_told(change: object, told: str) -> None:
    token, _ = sign(Claims(Head(sub=OPERATOR.public), Operator()), OPERATOR, NOW_S)
    assert callable(change)
    with pytest.raises(TokenProblem, match=told):
        read(change(token))


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"nats": {"type": "operator", "version": 3}}, "newer version"),
        ({"nats": {"type": "cluster", "version": 2}}, "ClusterClaims are not supported"),
        ({"nats": {"type": "other", "version": 2}}, "claim failed V1 signature verification"),
        ({"nats": []}, "not an object"),
        ({"nats": {"type": "operator", "version": "x"}}, "is not a number"),
        (
            {"iat": "x", "nats": {"type": "operator", "version": 2}},
            "string into Go struct field Head.iat",
        ),
        ({"nats": {"type": "account", "version": 2, "signing_keys": [5]}}, "of signing_keys"),
        (
            {"nats": {"type": "account", "version": 2, "signing_keys": [{"key": {}}]}},
            "field UserScope.key",
        ),
        ({"nats": {"type": "operator", "version": 2, "signing_keys": 5}}, "Operator.signing_keys"),
        ({"nats": {"type": "user", "version": 2}}, "unable to validate expected prefixes"),
    ],
)
def test_claims_that_nobody_should_believe(document: dict[str, object], told: str) -> None:
    head = {"sub": OPERATOR.public, "iss": OPERATOR.public}
    with pytest.raises(TokenProblem, match=told):
        read(forged({**head, **document}, OPERATOR))


@pytest.mark.parametrize(("nats", "kind"), [({}, ""), ({"type": "other"}, "other")])
def test_a_kind_that_is_none_is_told_when_it_is_signed(nats: object, kind: str) -> None:
    first, second, _ = forged({"iss": OPERATOR.public, "nats": nats}, OPERATOR).split(".")
    signature = base64.urlsafe_b64encode(OPERATOR.sign(second.encode())).rstrip(b"=").decode()
    with pytest.raises(TokenProblem, match=f'unsupported JWT claim type "{kind}"'):
        read(f"{first}.{second}.{signature}")


def test_other_algorithms_are_not_believed() -> None:
    document = {"sub": OPERATOR.public, "iss": OPERATOR.public, "nats": {"type": "operator"}}
    with pytest.raises(TokenProblem, match='unexpected "none" algorithm'):
        read(forged(document, OPERATOR, '{"typ":"JWT","alg":"none"}'))


def test_credentials_are_for_their_own_seed() -> None:
    issuer = Issuer(lambda: NOW_S)
    operator = issuer.new_operator("OP")
    account = issuer.new_account(operator, "A")
    user = issuer.new_user(operator, account, "bob")
    text = credentials(user.token, user.key)
    assert undecorated(text) == user.token
    with pytest.raises(JsctlError, match="does not match"):
        credentials(user.token, generate(KeyKind.USER))
    with pytest.raises(JsctlError, match="not available"):
        credentials(user.token, replace(user.key, seed=""))
    with pytest.raises(TokenProblem, match="not account claim"):
        read_as(Account, user.token)
