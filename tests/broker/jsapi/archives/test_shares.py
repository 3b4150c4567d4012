"""No account has all archives that may be under way on a server."""

import json
from dataclasses import replace

import pytest

from jsctl.broker.jsapi.archives import archives, restores
from jsctl.broker.options import AccountJetStream
from tests.broker.jsapi.archives.test_archives import begun, create, stream_body
from tests.support.archives import ask
from tests.support.node_play import NodePlay, PlayClient, node_options


@pytest.fixture
def clients() -> list[PlayClient]:
    """Of two accounts."""
    options = node_options()
    a, b, system = options.accounts
    both = (a, replace(b, jetstream=AccountJetStream()), system)
    play = NodePlay(replace(options, accounts=both))
    return [play.connect("a"), play.connect("b")]


def test_an_account_leaves_snapshots_to_others(
    clients: list[PlayClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "SNAPSHOTS_OF_ACCOUNT_MAX", 1)
    for one in clients:
        create(one)
        assert "error" not in one.ask("$JS.API.STREAM.SNAPSHOT.S", deliver_subject="nobody")
        answer = one.ask("$JS.API.STREAM.SNAPSHOT.S", deliver_subject="b")
        assert answer["error"]["err_code"] == 10064


def test_an_account_leaves_restores_to_others(
    clients: list[PlayClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restores, "RESTORES_OF_ACCOUNT_MAX", 1)
    body = json.dumps({"config": stream_body(name="T")}).encode()
    for one in clients:
        assert begun(one)
        assert ask(one, "$JS.API.STREAM.RESTORE.T", body)["error"]["err_code"] == 10062
