"""Users who are known by an nkey: whoever signs the challenge is let in, and nobody else."""

import json
from collections.abc import Callable, Iterator

import nats
import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.login import Caller, Seed

ALICE, BOB, EVE = Seed(1), Seed(2), Seed(3)
USERS = f"""
accounts {{
  A {{ users: [
    {{ nkey: {ALICE.public} }}
    {{ nkey: {BOB.public}, permissions: {{
      publish: "may.>", subscribe: {{ allow: ["_INBOX.>", "may.>"], deny: "may.not" }} }} }}
    {{ user: u, password: p }}
  ] }}
}}
"""
VIOLATION = "Authorization Violation"


@pytest.fixture(scope="module", params=list(KINDS))
def closed(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A server on which everybody has to log in."""
    with KINDS[str(request.param)](config=USERS, name="one") as running:
        yield running


@pytest.fixture
def caller(closed: Broker) -> Iterator[Caller]:
    """A connection that has not said anything."""
    with Caller(closed.port) as made:
        yield made


def test_the_challenge_is_told_and_never_the_same(closed: Broker) -> None:
    challenges = set()
    for _ in range(5):
        with Caller(closed.port) as one:
            assert one.info["auth_required"] is True
            assert len(one.challenge) == 15
            challenges.add(one.challenge)
    assert len(challenges) == 5


@pytest.mark.parametrize("standard", [False, True])
def test_the_holder_of_the_seed_is_let_in(caller: Caller, standard: bool) -> None:
    signature = ALICE.sign(caller.challenge, standard=standard)
    assert caller.login({"nkey": ALICE.public, "sig": signature})


NOBODY: dict[str, Callable[[str], dict[str, object]]] = {
    "nothing": lambda nonce: {},
    "no signature": lambda nonce: {"nkey": ALICE.public},
    "an empty signature": lambda nonce: {"nkey": ALICE.public, "sig": ""},
    "another seed": lambda nonce: {"nkey": ALICE.public, "sig": EVE.sign(nonce)},
    "an unknown key": lambda nonce: {"nkey": EVE.public, "sig": EVE.sign(nonce)},
    "another user's signature": lambda nonce: {"nkey": ALICE.public, "sig": BOB.sign(nonce)},
    "another challenge": lambda nonce: {"nkey": ALICE.public, "sig": ALICE.sign(nonce[::-1])},
    "no challenge": lambda nonce: {"nkey": ALICE.public, "sig": ALICE.sign("")},
    "no base64": lambda nonce: {"nkey": ALICE.public, "sig": "!" * 86},
    "half a signature": lambda nonce: {"nkey": ALICE.public, "sig": ALICE.sign(nonce)[:43]},
    "too long": lambda nonce: {"nkey": ALICE.public, "sig": ALICE.sign(nonce) * 2},
    "not ASCII": lambda nonce: {"nkey": ALICE.public, "sig": "\u00e9" * 86},
    "the key as a user": lambda nonce: {"user": ALICE.public, "sig": ALICE.sign(nonce)},
    "a key beside a password": lambda nonce: {"user": "u", "pass": "p", "nkey": "x"},
    "lower case": lambda nonce: {"nkey": ALICE.public.lower(), "sig": ALICE.sign(nonce)},
}


@pytest.mark.parametrize("what", list(NOBODY))
def test_nobody_else_is(caller: Caller, what: str) -> None:
    assert not caller.login(NOBODY[what](caller.challenge))
    assert caller.refusal == VIOLATION


def test_a_signature_is_good_for_its_own_connection_alone(closed: Broker) -> None:
    with Caller(closed.port) as first, Caller(closed.port) as second:
        said: dict[str, object] = {"nkey": ALICE.public, "sig": ALICE.sign(first.challenge)}
        assert first.login(said)
        assert not second.login(said) and second.refusal == VIOLATION


@pytest.mark.parametrize(
    "said",
    [
        '{"nkey":1}', '{"nkey":{}}', '{"sig":[]}', '{"sig":true}', '{"user":{}}', '{"pass":1}',
        '{"auth_token":5}', '{"jwt":3}', '{"tls_required":"x","user":"u","pass":"p"}',
        '{"new_account":"x","user":"u","pass":"p"}', '{"account":5,"user":"u","pass":"p"}',
        '{"import":5,"user":"u","pass":"p"}', '{"remote_account":5,"user":"u","pass":"p"}',
        '{"proxy_sig":5,"user":"u","pass":"p"}', '{"protocol":1.5,"user":"u","pass":"p"}',
        '["nkey"]', '"nkey"', "{", '{"user":"u","pass":"p"} x',
    ],
)  # fmt: skip
def test_values_of_wrong_types_cost_their_sender_the_connection(caller: Caller, said: str) -> None:
    assert not caller.login(said)


def test_halves_of_surrogate_pairs_let_nobody_in(closed: Broker) -> None:
    for said in (
        '{"user":"\\ud800","pass":"p"}',
        '{"user":"u","pass":"\\udfff"}',
        f'{{"nkey":"{ALICE.public}","sig":"\\ud800"}}',
    ):
        with Caller(closed.port) as caller:
            assert not caller.login(said)
    with Caller(closed.port) as caller:
        assert caller.login({"user": "u", "pass": "p"})


def test_a_password_is_still_a_password(caller: Caller) -> None:
    assert caller.login({"user": "u", "pass": "p", "sig": "whatever", "jwt": "whatever"})


def test_permissions_hold(caller: Caller) -> None:
    assert caller.login({"nkey": BOB.public, "sig": BOB.sign(caller.challenge)})
    assert caller.ask(b"PUB may.x 0\r\n\r\nSUB may.x 1\r\n") == []
    assert caller.ask(b"PUB other 0\r\n\r\n") == [
        "-ERR 'Permissions Violation for Publish to \"other\"'"
    ]
    for subject in ("other", "may.not"):
        assert caller.ask(b"SUB %s 2\r\n" % subject.encode()) == [
            f"-ERR 'Permissions Violation for Subscription to \"{subject}\"'"
        ]


async def test_a_client_library_logs_in(closed: Broker) -> None:
    connection = await nats.connect(
        closed.url, nkeys_seed_str=ALICE.text, allow_reconnect=False, connect_timeout=30
    )
    subscription = await connection.subscribe("a")
    await connection.publish("a", b"x")
    assert (await subscription.next_msg(30)).data == b"x"
    await connection.close()


def test_monitoring_shows_the_nkey(closed: Broker, caller: Caller) -> None:
    assert caller.login({"nkey": ALICE.public, "sig": ALICE.sign(caller.challenge)})
    page = closed.monitor(f"/connz?auth=1&user={ALICE.public}")
    assert isinstance(page, dict) and isinstance(page["connections"], list)
    shown = page["connections"][0]
    assert isinstance(shown, dict)
    assert {key: shown.get(key) for key in ("authorized_user", "account", "issuer_key")} == {
        "authorized_user": ALICE.public,
        "account": "A",
        "issuer_key": "A",
    }


def test_a_user_may_ask_who_it_is(caller: Caller, closed: Broker) -> None:
    with Caller(closed.port) as plain:
        assert plain.login({"user": "u", "pass": "p"})
        assert who(plain) == {"user": "u", "account": "A", "account_name": "A"}
    assert caller.login({"nkey": ALICE.public, "sig": ALICE.sign(caller.challenge)})
    assert who(caller) == {"user": ALICE.public, "account": "A", "account_name": "A"}


def who(caller: Caller) -> object:
    """What the server says of the user that asks."""
    _, payload = caller.request("$SYS.REQ.USER.INFO")
    return json.loads(payload)["data"]


@pytest.mark.parametrize(
    ("config", "said", "shown"),
    [
        ("debug: false", {}, ""),
        ("debug: false", {"user": "me", "pass": "x"}, "me"),
        ("debug: false", {"auth_token": "t"}, "[REDACTED]"),
        ("authorization { token: t }", {"auth_token": "t"}, "[REDACTED]"),
        ("authorization { user: u, password: p }", {"user": "u", "pass": "p"}, "u"),
    ],
)
@pytest.mark.parametrize("kind", list(KINDS))
def test_who_somebody_is_without_users(
    kind: str, config: str, said: dict[str, object], shown: str
) -> None:
    with KINDS[kind](config=config) as server, Caller(server.port) as caller:
        assert caller.login(said)
        found = who(caller)
        assert isinstance(found, dict)
        assert (found["user"], found["account"]) == (shown, "$G")
        assert "permissions" not in found and "expires" not in found
