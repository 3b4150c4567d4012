"""Accounts that come, change and go, and what listens in them and between them."""

from dataclasses import replace

import pytest

from jsctl.broker.accounts.accounts import Account, AccountChangeKind, Accounts
from jsctl.broker.errors import ConfigError
from jsctl.broker.interest.targets import RouteLink, Sink
from jsctl.broker.options import (
    AccountLimits,
    AccountOptions,
    ExportOptions,
    ImportOptions,
    MappingOptions,
    MappingTarget,
    Options,
    UserOptions,
)
from jsctl.broker.protocol.ops import Interest, NoInterest
from tests.broker.routing.routing_bench import Server

A = AccountOptions("A", (UserOptions("a", "x"),))
B = AccountOptions("B", (UserOptions("b", "x"),))
OFFERS = replace(A, exports=(ExportOptions("s.>"), ExportOptions("q.>", service=True)))
TAKES = replace(B, imports=(ImportOptions("A", "s.>", prefix="p"),))
MORE = replace(B, imports=(*TAKES.imports, ImportOptions("A", "s.x", prefix="r")))
ASKS = replace(B, imports=(ImportOptions("A", "q.x", service=True, to="ask"),))


def options(*accounts: AccountOptions) -> Options:
    return Options(accounts=accounts)


def weight(account: Account, subject: bytes) -> int:
    """Subscriptions that a subject meets, members of remote queues each for itself."""
    return sum(one.weight for one in account.sublist if one.subject == subject)


def test_events() -> None:
    accounts = Accounts(options(A, B))
    one, other = accounts.get("A"), accounts.get("B")
    limited = replace(A, limits=AccountLimits(connections_max=3))
    changes = accounts.configure(options(limited, AccountOptions("C")))
    found = {(one.kind, one.account.name, one.before) for one in changes}
    assert found == {
        (AccountChangeKind.REMOVED, "B", None),
        (AccountChangeKind.CHANGED, "A", A),
        (AccountChangeKind.ADDED, "C", None),
    }
    assert accounts.get("A") is one and one is not None and one.limits.connections_max == 3
    assert accounts.get("B") is None and "a" in accounts.logins.users
    assert "b" not in accounts.logins.users
    accounts.configure(options(limited, B))
    assert accounts.get("B") is not other
    assert accounts.configure(options(limited, B)) == []


def test_a_mapping_of_no_use_changes_nothing() -> None:
    accounts = Accounts(options(A))
    one = accounts.get("A")
    assert one is not None
    bad = MappingOptions("x.*", (MappingTarget("y.$3"),))
    with pytest.raises(ConfigError):
        accounts.put(replace(A, mappings=(bad,)), "c")
    assert one.options == A and one.mappings == []


def test_imports_are_wired_anew_for_who_listens_already() -> None:
    server = Server(options(OFFERS, B))
    server.client(1, b',"user":"a","pass":"x"')
    server.client(2, b',"user":"b","pass":"x"')
    server.say(2, b"SUB > 1\r\n")
    server.say(1, b"PUB s.x 0\r\n\r\n")
    assert server.heard(2) == b""
    server.reload(options(OFFERS, TAKES))
    server.say(1, b"PUB s.x 0\r\n\r\n")
    assert server.heard(2) == b"MSG p.s.x 1 0\r\n\r\n"
    server.reload(options(OFFERS, MORE))
    server.say(1, b"PUB s.x 0\r\n\r\n")
    assert sorted(server.heard(2).split(b"MSG")) == [
        b"",
        b" p.s.x 1 0\r\n\r\n",
        b" r.s.x 1 0\r\n\r\n",
    ]
    server.reload(options(OFFERS, B))
    server.say(1, b"PUB s.x 0\r\n\r\n")
    assert server.heard(2) == b""
    exporter = server.accounts.get("A")
    assert exporter is not None and not server.router.has_interest(exporter, b"s.x")


def test_other_servers_are_not_told_of_what_stays() -> None:
    server = Server(options(OFFERS, TAKES))
    server.client(2, b',"user":"b","pass":"x"')
    server.say(2, b"SUB p.s.x 1\r\n")
    link = RouteLink(9, "p")
    server.router.add_route(link)
    server.emit()
    server.heard(9)
    server.reload(options(OFFERS, MORE))
    assert server.heard(9) == b""
    server.reload(options(OFFERS, B))
    assert server.heard(9) == b"RS- A s.x\r\n"


def test_a_service_import_comes_and_goes() -> None:
    server = Server(options(OFFERS, B))
    server.client(1, b',"user":"a","pass":"x"')
    server.client(2, b',"user":"b","pass":"x"')
    server.say(1, b"SUB q.x 1\r\n")
    server.reload(options(OFFERS, ASKS))
    server.say(2, b"SUB in 1\r\nPUB ask in 0\r\n\r\n")
    assert server.heard(1).startswith(b"HMSG q.x 1 _R_.")
    server.reload(options(OFFERS, B))
    server.say(2, b"PUB ask in 0\r\n\r\n")
    assert server.heard(1) == b""


def test_an_import_without_its_export_changes_nothing() -> None:
    server = Server(options(OFFERS, TAKES))
    account = server.accounts.get("B")
    assert account is not None
    before = list(account.streams)
    server.accounts.put(replace(MORE, imports=(*MORE.imports, ImportOptions("A", "no"))), "")
    with pytest.raises(ConfigError):
        server.router.imports.install()
    assert account.streams == before


def test_services_of_the_server_are_in_every_account_while_it_is_there() -> None:
    server = Server(options(A))
    server.router.subscribe_everywhere(b"ask", "owner")
    server.reload(options(A, B))
    server.client(2, b',"user":"b","pass":"x"')
    server.say(2, b"PUB ask 0\r\n\r\n")
    (dirty,) = server.router.take_dirty()
    gone = server.accounts.get("B")
    assert dirty.account is gone and gone is not None
    server.reload(options(A))
    assert not server.router.has_interest(gone, b"ask")


def test_what_other_servers_told_of_an_account_counts_once_it_is_here() -> None:
    server = Server(options(A))
    link = RouteLink(9, "p")
    server.router.add_route(link)
    server.router.route_ops(
        link, [Interest(b"B", b"x", b"", 1, b""), Interest(b"B", b"y", b"g", 2, b"")]
    )
    server.router.route_ops(
        link, [Interest(b"B", b"z", b"", 1, b""), NoInterest(b"B", b"z", b"", b"")]
    )
    server.reload(options(A, B))
    known = server.accounts.get("B")
    assert known is not None
    assert [weight(known, one) for one in (b"x", b"y", b"z")] == [1, 2, 0]
    server.reload(options(A))
    server.reload(options(A, B))
    known = server.accounts.get("B")
    assert known is not None and weight(known, b"y") == 2


def test_who_was_in_an_account_that_is_gone_takes_back_its_interest() -> None:
    server = Server(options(A, B))
    link = RouteLink(9, "p")
    server.router.add_route(link)
    server.client(2, b',"user":"b","pass":"x"')
    server.say(2, b"SUB x 1\r\n")
    server.heard(9)
    server.reload(options(A))
    assert server.heard(9) == b"RS- B x\r\n" and server.closes[2] == "Client Closed"


def test_a_sink_is_heard_through_new_imports() -> None:
    server = Server(options(OFFERS, B))
    importer = server.accounts.get("B")
    assert importer is not None
    sink = Sink("stream")
    server.router.subscribe(importer, b"p.>", sink)
    server.client(1, b',"user":"a","pass":"x"')
    server.reload(options(OFFERS, TAKES))
    server.say(1, b"PUB s.x 2\r\nhi\r\n")
    assert [(one[0], one[3]) for one in sink.take()] == [(b"p.s.x", b"hi")]
