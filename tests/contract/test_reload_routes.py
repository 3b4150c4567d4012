"""Routes and what crosses them, when the servers of a cluster reload; the same on both servers."""

import pytest

from jsctl.testing import HOST, ReservedPort
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.reloading import Reloading
from tests.support.waiting import wait_for


def config(name: str, port: int, *, route: str = "", secret: str = "p", more: str = "") -> str:
    """A member of a cluster; `route` is where it dials."""
    routes = f'routes: ["nats://r:{secret}@{HOST}:{route}"]' if route else ""
    return f"""server_name: {name}
cluster {{
    name: c
    listen: "{HOST}:{port}"
    authorization {{ user: r, password: {secret} }}
    {routes}
}}
accounts {{
    A {{ users: [ {{user: a, password: a}} ] }}
    {more}
}}
"""


def linked(server: Reloading) -> bool:
    """Whether a route is there."""
    page = server.broker.monitor("/routez")
    assert isinstance(page, dict)
    return bool(page["num_routes"])


def hears(server: Reloading, name: str) -> Caller:
    """A client that listens."""
    caller = Caller(server.port)
    assert caller.login({"user": name, "pass": name})
    caller.ask(b"SUB x 1\r\n")
    return caller


def crosses(listener: Caller, publisher: Caller) -> bool:
    """Whether a message gets from one server's client to another one's."""

    def arrived() -> bool:
        publisher.ask(b"PUB x 1\r\na\r\n")
        return any(line.startswith("MSG x") for line in listener.ask(b""))

    return wait_for(arrived, "a message across the route")


@pytest.mark.parametrize("kind", list(KINDS))
def test_routes_and_accounts_of_a_cluster_that_reloads(kind: str) -> None:
    ports = ReservedPort(), ReservedPort()
    one, two = (port.number for port in ports)
    with Reloading(kind, config("n1", one)) as first, Reloading(kind, config("n2", two)) as second:
        assert not linked(second)
        second.must_reload(config("n2", two, route=str(one)))
        wait_for(lambda: linked(first) and linked(second), "the route that was added")
        with hears(first, "a") as listener, hears(second, "a") as publisher:
            assert crosses(listener, publisher)

        # An account comes at one server, has listeners, and comes at the other one later. A
        # nats-server has forgotten by then what it was told of the account.
        account = "B { users: [ {user: b, password: b} ] }"
        first.must_reload(config("n1", one, more=account))
        with hears(first, "b") as listener:
            second.must_reload(config("n2", two, route=str(one), more=account))
            with hears(second, "b") as publisher:
                assert kind == "nats-server" or crosses(listener, publisher)

        # Who has the old password has to go, and comes back with the new one.
        first.must_reload(config("n1", one, secret="q", more=account))
        wait_for(lambda: not linked(first), "the end of the route")
        second.must_reload(config("n2", two, route=str(one), secret="q", more=account))
        wait_for(lambda: linked(first) and linked(second), "the route with the new password")

        second.must_reload(config("n2", two, secret="q", more=account))
        wait_for(lambda: not linked(first) and not linked(second), "the route that was removed")
    for port in ports:
        port.release()
