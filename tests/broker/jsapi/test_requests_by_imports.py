"""What comes back through a service import is no request, wherever who asked wants it."""

import pytest

from jsctl.broker.login_options.permissions import PermissionRules, SubjectPermission
from jsctl.broker.options import (
    AccountJetStream,
    AccountOptions,
    ExportOptions,
    ImportOptions,
    UserOptions,
)
from tests.support.node_play import NodePlay, node_options, user
from tests.support.stream_requests import consumer, stream

NEXT = "$JS.API.CONSUMER.MSG.NEXT.S.C"
GET = "$JS.API.DIRECT.GET.S.s.1"


@pytest.mark.parametrize("asked", [NEXT, GET])
def test_who_may_pull_from_another_account_deletes_nothing_in_his(asked: str) -> None:
    rules = PermissionRules(SubjectPermission(allow=("svc",)), SubjectPermission(allow=("x",)))
    guest = UserOptions("guest", "guest", permissions=rules)
    accounts = (
        AccountOptions(
            "A",
            (user("a"),),
            jetstream=AccountJetStream(),
            exports=(ExportOptions(asked, service=True),),
        ),
        AccountOptions(
            "B",
            (user("b"), guest),
            jetstream=AccountJetStream(),
            imports=(ImportOptions("A", asked, service=True, to="svc"),),
        ),
    )
    play = NodePlay(node_options(accounts=accounts))
    there, here = play.connect("a"), play.connect("b")
    there.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, allow_direct=True))
    there.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    there.publish("s.1")
    here.ask("$JS.API.STREAM.CREATE.T", **stream("T", 1))
    play.connect("guest").publish("svc", b"", "$JS.API.STREAM.DELETE.T")
    play.run(1)
    assert here.ask("$JS.API.STREAM.NAMES")["streams"] == ["T"]
