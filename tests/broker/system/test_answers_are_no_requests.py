"""What the system account's services answer is no request, wherever it is to go."""

import pytest

from jsctl.broker.login_options.permissions import PermissionRules, SubjectPermission
from jsctl.broker.options import AccountJetStream, AccountOptions, UserOptions
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, node_options, user

PURGE = "$JS.API.ACCOUNT.PURGE.A"
"""It takes any body."""


def with_guest(subject: str) -> tuple[AccountOptions, ...]:
    """Accounts A and the system's, with one there who may ask for one thing."""
    rules = PermissionRules(SubjectPermission(allow=(subject,)), SubjectPermission(allow=("x",)))
    guest = UserOptions("guest", "guest", permissions=rules)
    return (
        AccountOptions("A", (user("a"),), jetstream=AccountJetStream()),
        AccountOptions("$SYS", (user("sys"), guest)),
    )


@pytest.mark.parametrize(
    "subject", ["$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.VARZ", "$SYS.DEBUG.SUBSCRIBERS"]
)
def test_who_may_look_at_the_server_purges_no_account(subject: str) -> None:
    play = NodePlay(node_options(accounts=with_guest(subject)))
    owner = play.connect("a")
    owner.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"])
    play.connect("guest").publish(subject, b"{}", PURGE)
    play.run(0.5)
    assert "error" not in owner.ask("$JS.API.STREAM.INFO.S")
    (done,) = play.connect("sys").request(PURGE)
    assert b'"initiated":true' in done


def test_what_servers_counted_together_purges_no_account() -> None:
    subject = "$SYS.DEBUG.SUBSCRIBERS"
    cluster = ClusterPlay(accounts=with_guest(subject))
    server = cluster.servers["n1"]
    owner = server.connect("a")
    cluster.run(5)
    owner.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"])
    server.connect("guest").publish(subject, b"x", PURGE)
    cluster.run(2)
    assert "error" not in owner.ask("$JS.API.STREAM.INFO.S")
