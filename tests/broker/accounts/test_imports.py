"""Imports between two accounts, as clients see them."""

import re
from time import process_time

import pytest

from jsctl.broker.accounts import imports
from jsctl.broker.errors import ConfigError
from jsctl.broker.interest.targets import RouteLink
from jsctl.broker.options import AccountOptions, ExportOptions, ImportOptions, Options, UserOptions
from tests.broker.routing.routing_bench import Server


def two(exports: list[ExportOptions], imports: list[ImportOptions]) -> Options:
    exporter = AccountOptions("A", (UserOptions("a", "x"),), exports=tuple(exports))
    importer = AccountOptions("B", (UserOptions("b", "x"),), imports=tuple(imports))
    return Options(accounts=(exporter, importer))


def started(exports: list[ExportOptions], imports: list[ImportOptions]) -> Server:
    server = Server(two(exports, imports))
    server.client(1, b',"user":"a","pass":"x","no_responders":true')
    server.client(2, b',"user":"b","pass":"x","no_responders":true')
    return server


@pytest.mark.parametrize(
    ("wanted", "published", "heard"),
    [
        (ImportOptions("A", "s.>"), b"s.a.b", b"s.a.b"),
        (ImportOptions("A", "s.>", prefix="p"), b"s.a", b"p.s.a"),
        (ImportOptions("A", "s.*.*", to="t.$2.$1"), b"s.a.b", b"t.b.a"),
        (ImportOptions("A", "s.*.*", to="t.*.*"), b"s.a.b", b"t.a.b"),
        (ImportOptions("A", "s.x", to="t"), b"s.x", b"t"),
    ],
)
def test_streams(wanted: ImportOptions, published: bytes, heard: bytes) -> None:
    server = started([ExportOptions("s.>")], [wanted])
    exporter = server.accounts.get("A")
    assert exporter is not None and not server.router.has_interest(exporter, published)
    server.say(1, b"SUB in 1\r\nPUB %s in 0\r\n\r\n" % published)
    assert b"503" in server.heard(1)
    server.say(2, b"SUB > 1\r\n")
    assert server.router.has_interest(exporter, published)
    server.say(1, b"PUB %s 1\r\nx\r\n" % published * 20)
    assert server.heard(2) == b"MSG %s 1 1\r\nx\r\n" % heard * 20
    server.say(2, b"PUB %s 0\r\n\r\n" % published)
    assert server.heard(1) == b""


@pytest.mark.parametrize("to", ["t", "t.$1", "t.$2"])
def test_an_import_that_loses_tokens_cannot_be_listened_to(to: str) -> None:
    with pytest.raises(ConfigError):
        Server(two([ExportOptions("s.>")], [ImportOptions("A", "s.*.*", to=to)]))


def test_a_reload_looks_at_each_import_once() -> None:
    """Thousands of accounts may take something of one, and everybody waits meanwhile."""
    wanted = (ImportOptions("A", "s.>"),)
    takers = [AccountOptions(f"T{number}", imports=wanted) for number in range(6000)]
    exporter = AccountOptions("A", exports=(ExportOptions("s.>"),))
    router = Server(Options(accounts=(exporter, *takers))).router
    began = process_time()
    router.follow([])
    assert process_time() - began < 1


def test_an_import_does_not_look_through_all_exports() -> None:
    """An account may have something of its own for each of thousands."""
    numbers = range(3000)
    exports = tuple(ExportOptions(f"s.{number}.>", accounts=(f"T{number}",)) for number in numbers)
    exports += tuple(ExportOptions(f"t.{number}") for number in numbers)
    takers = [
        AccountOptions(
            f"T{number}",
            imports=(ImportOptions("A", f"s.{number}.x"), ImportOptions("A", f"t.{number}")),
        )
        for number in numbers
    ]
    began = process_time()
    Server(Options(accounts=(AccountOptions("A", exports=exports), *takers)))
    assert process_time() - began < 5


@pytest.mark.parametrize("exported", ["s.x", "s.*"])
def test_an_export_in_the_words_of_the_import_decides(exported: str) -> None:
    """What is for some accounts is not for others as there is a wider one."""
    wide, narrow = ExportOptions("s.>"), ExportOptions(exported, accounts=("C",))
    for exports in ([wide, narrow], [narrow, wide], [narrow, wide, ExportOptions(exported)]):
        with pytest.raises(ConfigError, match="not authorized"):
            Server(two(exports, [ImportOptions("A", exported)]))
    Server(
        two(
            [wide, narrow, ExportOptions(exported, accounts=("B",))], [ImportOptions("A", exported)]
        )
    )


def service(account: str, subject: str, to: str = "") -> ImportOptions:
    return ImportOptions(account, subject, service=True, to=to)


def accounts(**imported: list[ImportOptions]) -> Options:
    """Each exports everything."""
    exports = (ExportOptions(">", service=True),)
    made = [AccountOptions(one, exports=exports, imports=tuple(imported[one])) for one in imported]
    return Options(accounts=tuple(made))


@pytest.mark.parametrize(
    "circle",
    [
        {"A": [service("A", "s.>", "s.>")]},
        {"A": [service("B", "s", "t")], "B": [service("A", "t", "s")]},
        {"A": [service("B", "s.*", "s.$1")], "B": [service("A", "s.x")]},
        {
            "A": [service("B", "s"), service("C", "other")],
            "B": [service("C", "s", ">")],
            "C": [service("A", "s.>"), service("A", "s")],
        },
    ],
)
def test_no_request_goes_round_in_a_circle(circle: dict[str, list[ImportOptions]]) -> None:
    """With two ways from each account to the other, one would have been hundreds."""
    with pytest.raises(ConfigError, match="import forms a cycle"):
        Server(accounts(**circle))


@pytest.mark.parametrize(
    "sound",
    [
        {"A": [service("A", "s", "t")]},
        {"A": [service("B", "s")], "B": [service("A", "t")]},
        {"A": [service("B", "s"), service("B", "t")], "B": [service("C", ">", ">")], "C": []},
    ],
)
def test_ways_that_end_are_none(sound: dict[str, list[ImportOptions]]) -> None:
    assert len(Server(accounts(**sound)).router.imports) == 0


def test_other_servers_are_told_of_listeners_in_the_exporting_account() -> None:
    server = started([ExportOptions("s.>")], [ImportOptions("A", "s.>", prefix="p")])
    link = RouteLink(9, "p")
    server.router.add_route(link)
    server.heard(9)
    server.say(2, b"SUB p.s.x g 1\r\n")
    assert server.heard(9) == b"RS+ B p.s.x g 1\r\nRS+ A s.x g 1\r\n"
    server.route(link, b"RMSG A s.x | g 1\r\n1\r\nRMSG A s.x 1\r\n2\r\n")
    assert server.heard(2) == b"MSG p.s.x 1 1\r\n1\r\n"
    server.say(2, b"UNSUB 1\r\n")
    assert server.heard(9) == b"RS- B p.s.x g\r\nRS- A s.x g\r\n"


def test_a_token_may_have_to_name_the_importer() -> None:
    export = ExportOptions("s.*", account_token_position=2)
    server = started([export], [ImportOptions("A", "s.B")])
    server.say(2, b"SUB > 1\r\n")
    server.say(1, b"PUB s.B 1\r\nx\r\nPUB s.C 1\r\ny\r\n")
    assert server.heard(2) == b"MSG s.B 1 1\r\nx\r\n"
    for strange in ("s.C", "s.*"):
        with pytest.raises(ConfigError, match="not authorized"):
            Server(two([export], [ImportOptions("A", strange)]))


@pytest.mark.parametrize(
    ("wanted", "asked", "served"),
    [
        (ImportOptions("A", "req.x", service=True), b"req.x", b"req.x"),
        (ImportOptions("A", "req.x", service=True, to="help"), b"help", b"req.x"),
        (ImportOptions("A", "req.*", service=True, to="help.$1"), b"help.y", b"req.y"),
        (ImportOptions("A", "req.>", service=True), b"req.a.b", b"req.a.b"),
    ],
)
def test_services(wanted: ImportOptions, asked: bytes, served: bytes) -> None:
    server = started([ExportOptions("req.>", service=True)], [wanted])
    server.say(2, b"SUB in 7\r\nPUB %s in 1\r\nq\r\n" % asked)
    assert b"503" in server.heard(2)
    server.say(1, b"SUB req.> 1\r\n")
    server.say(2, b"PUB %s in 1\r\nq\r\n" % asked)
    line, _, rest = server.heard(1).partition(b"\r\n")
    verb, subject, sid, reply, *_ = line.split(b" ")
    assert (verb, subject, sid) == (b"HMSG", served, b"1") and reply.startswith(b"_R_.")
    assert rest == b'NATS/1.0\r\nNats-Request-Info: {"acc":"B","rtt":1}\r\n\r\nq\r\n'
    server.say(1, b"PUB %s 2\r\nok\r\n" % reply * 2)
    assert server.heard(2) == b"MSG in 7 2\r\nok\r\n"
    assert len(server.router.imports) == 0


def test_replies_from_another_server_and_streamed_ones() -> None:
    export = ExportOptions("req", service=True, response_type="stream", response_threshold_ns=100)
    server = started([export], [ImportOptions("A", "req", service=True)])
    link = RouteLink(9, "p")
    server.router.add_route(link)
    server.route(link, b"RS+ A req\r\n")
    server.say(2, b"SUB in 7\r\n")
    server.heard(9)
    server.say(2, b"PUB req in 1\r\nq\r\n")
    interest, message, *_ = server.heard(9).split(b"\r\n")
    reply = message.split(b" ")[3]
    assert interest == b"RS+ A " + reply
    server.route(link, b"RMSG A %s 1\r\n1\r\n" % reply * 2)
    assert server.heard(2) == b"MSG in 7 1\r\n1\r\n" * 2
    server.now_ns += 1000
    server.say(2, b"PUB req in 1\r\nq\r\n")
    assert b"RS- A " + reply in server.heard(9)
    assert len(server.router.imports) == 1


def test_imports_need_an_export() -> None:
    for export in (
        ExportOptions("other"),
        ExportOptions("s", service=True),
        ExportOptions("s", accounts=("C",)),
    ):
        with pytest.raises(ConfigError, match="not authorized"):
            Server(two([export], [ImportOptions("A", "s")]))
    with pytest.raises(ConfigError):
        Server(two([], [ImportOptions("NONE", "s")]))


def test_imports_in_a_circle_end() -> None:
    both = (ExportOptions("s"),)
    user = UserOptions("a", "x")
    one = AccountOptions("A", (user,), exports=both, imports=(ImportOptions("B", "s"),))
    other = AccountOptions("B", exports=both, imports=(ImportOptions("A", "s"),))
    server = Server(Options(accounts=(one, other)))
    server.client(1, b',"user":"a","pass":"x"')
    server.say(1, b"PUB s 0\r\n\r\n")
    exporter = server.accounts.get("A")
    assert exporter is not None and not server.router.has_interest(exporter, b"s")


FORGED = b'Nats-Request-Info: {"acc":"A"}'


@pytest.mark.parametrize(
    "block",
    [
        b"NATS/1.0\r\n%s\r\n\r\n" % FORGED,
        b"NATS/1.0\r\nX: y\n%s\r\n\r\n" % FORGED,
        b"NATS/1.0\r\nX: y\r%s\r\n\r\n" % FORGED,
        b"NATS/1.0\r\n%s\n" % FORGED,
        b"NATS/1.0\r\nX: y\r\n%s\nab" % FORGED,
        b"NATS/1.0\n%s\n\n" % FORGED,
        b"NATS/1.0\r\n%s\r\n\r\n" % FORGED.lower(),
        b"NATS/1.0\r\n %s\r\n\r\n" % FORGED.replace(b":", b" :", 1),
        FORGED,
        FORGED + b"\r\n\r\n",
        b"ab",
        b"",
    ],
)
def test_who_asks_cannot_be_forged(block: bytes) -> None:
    """Libraries end a header's line with a line feed alone, too, and take a name in any case."""
    wanted = ImportOptions("A", "req", service=True)
    server = started([ExportOptions("req", service=True)], [wanted])
    server.say(1, b"SUB req 1\r\n")
    server.say(2, b"HPUB req %d %d\r\n%s\r\n" % (len(block), len(block), block))
    head, _, rest = server.heard(1).partition(b"\r\n")
    told = rest[: int(head.split()[-2])]
    assert told.startswith(b"NATS/1.0\r\n") and told.endswith(b"\r\n\r\n")
    lines = re.split(rb"\r\n|\r|\n", told)
    asked = [line for line in lines if b"nats-request-info" in line.lower()]
    assert asked == [b'Nats-Request-Info: {"acc":"B","rtt":1}']


def test_requests_without_end_cost_no_other_account_its_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(imports, "RESPONSES_MAX", 4)
    wanted = (ImportOptions("A", "req", service=True),)
    exporter = AccountOptions(
        "A", (UserOptions("a", "x"),), exports=(ExportOptions("req", service=True),)
    )
    importers = [AccountOptions(n, (UserOptions(n.lower(), "x"),), imports=wanted) for n in "BC"]
    server = Server(Options(accounts=(exporter, *importers)))
    for conn, name in ((1, b"a"), (2, b"b"), (3, b"c")):
        server.client(conn, b',"user":"%b","pass":"x"' % name)
    server.say(1, b"SUB req 1\r\n")
    server.say(2, b"SUB in 1\r\nPUB req in 1\r\nq\r\n")
    reply = server.heard(1).split(b" ")[3]
    server.say(3, b"PUB req in 1\r\nq\r\n" * 10)
    assert len(server.router.imports) == 5
    server.say(1, b"PUB %b 2\r\nok\r\n" % reply)
    assert server.heard(2) == b"MSG in 1 2\r\nok\r\n"
    assert len(server.router.imports) == 4
