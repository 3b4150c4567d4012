"""What a server sends where clients want it is no request: they may not be allowed to make it."""

import json

import pytest

from jsctl.broker.options import (
    AccountJetStream,
    AccountOptions,
    ExportOptions,
    ImportOptions,
)
from tests.support.node_play import NodePlay, PlayClient, node_options, user
from tests.support.stream_requests import consumer, stream

DELETE = "$JS.API.STREAM.DELETE.T"
CREATE = "$JS.API.STREAM.CREATE.N"
CONFIG = b'{"name":"N","subjects":["n"]}'


@pytest.fixture
def client() -> PlayClient:
    """Streams S, which allows direct gets, and T."""
    made = NodePlay().connect("a")
    made.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, allow_direct=True))
    made.ask("$JS.API.STREAM.CREATE.T", **stream("T", 1))
    return made


def streams(client: PlayClient) -> list[str]:
    client.play.run(1)
    return list(client.ask("$JS.API.STREAM.NAMES")["streams"] or ())


def test_a_consumer_delivers_no_requests(client: PlayClient) -> None:
    made = client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(deliver_subject=DELETE))
    assert "error" not in made
    client.publish("s.1")
    assert streams(client) == ["S", "T"]


@pytest.mark.parametrize("to", [DELETE, CREATE])
def test_pulls_and_gets_are_answered_by_no_requests(client: PlayClient, to: str) -> None:
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    client.publish("s.1", CONFIG if to == CREATE else b"")
    client.publish("$JS.API.DIRECT.GET.S.s.1", b"", to)
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b"", to)
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"no_wait":true}', to)
    assert streams(client) == ["S", "T"]


def test_acknowledgements_are_confirmed_by_no_requests(client: PlayClient) -> None:
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    client.publish("s.1", b"x")
    client.subscribe("got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", json.dumps({"batch": 1}).encode(), "got")
    client.play.run(0.1)
    _, reply, payload = client.messages[-1]
    assert payload == b"x"
    client.publish(reply, b"+ACK", DELETE)
    assert streams(client) == ["S", "T"]


IMPORTS = (
    ImportOptions("B", DELETE, service=True, to="del"),
    ImportOptions("B", "ask", service=True),
)
EXPORTS = (ExportOptions("$JS.API.>", service=True), ExportOptions("ask", service=True))


@pytest.fixture
def accounts() -> dict[str, PlayClient]:
    """Clients of accounts A and B, whose stream T is deleted by what A has on `del`."""
    shared = AccountJetStream()
    options = node_options(
        accounts=(
            AccountOptions("A", (user("a"),), imports=IMPORTS, jetstream=shared),
            AccountOptions("B", (user("b"),), exports=EXPORTS, jetstream=shared),
            AccountOptions("$SYS", (user("sys"),)),
        )
    )
    play = NodePlay(options)
    made = {name: play.connect(name) for name in ("a", "b")}
    made["a"].ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, allow_direct=True))
    made["b"].ask("$JS.API.STREAM.CREATE.T", **stream("T", 1))
    return made


def test_nothing_is_delivered_to_the_api_of_another_account(
    accounts: dict[str, PlayClient],
) -> None:
    asking, owner = accounts["a"], accounts["b"]
    made = asking.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(deliver_subject="del"))
    assert "error" not in made
    asking.publish("s.1")
    asking.play.run(1)
    asking.publish("$JS.API.DIRECT.GET.S.s.1", b"", "del")
    asking.publish("$JS.API.INFO", b"", "del")
    asking.publish("$SYS.REQ.USER.INFO", b"", "del")
    assert streams(owner) == ["T"]


def test_no_service_answers_to_the_api_of_its_account(accounts: dict[str, PlayClient]) -> None:
    """The answer goes to the account that asked, and would be led on from there."""
    asking, owner = accounts["a"], accounts["b"]
    owner.subscribe("ask")
    asking.publish("ask", b"", "del")
    _, reply, _ = owner.messages[-1]
    owner.publish(reply)
    assert streams(owner) == ["T"]


def test_who_may_ask_does_so_in_another_account(accounts: dict[str, PlayClient]) -> None:
    accounts["a"].publish("del")
    assert streams(accounts["b"]) == []
