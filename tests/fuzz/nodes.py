"""A whole node without I/O: sessions, the API, the system services, the monitoring pages.

After each input an innocent client is served as before; now and then the node is made anew.
"""

import gc
import json
import random
import re
from collections.abc import Sequence

from jsctl.broker.gateway_options import GatewayOptions, GatewayUrl, RemoteGateway
from jsctl.broker.leafnode_options import LeafNodeOptions, LeafRemote, LeafUrl
from jsctl.broker.options import ClusterOptions, Options
from jsctl.broker.routing.gateway_replies import mark
from jsctl.broker.turn import Accepted, ConnKind, Query
from tests.fuzz import requests
from tests.fuzz.mutate import cuts, mutated
from tests.fuzz.parsers import RouteHandshake, RouteParser
from tests.fuzz.target import SIZE_MAX, Target
from tests.support.node_play import NodePlay, PlayClient

INPUTS_PER_NODE = 2000
TURN_CHUNKS = 20
"""Pieces of one connection in a turn, on average; alone, a turn costs more than they do."""
DIALS_AGAIN_S = 0.3
_QUEUES = re.compile(rb"SUB[ \t\r]+[^ \t]+[ \t]+[^ \t\r\n]+[ \t\r]+[^ \t\r\n]", re.IGNORECASE)
"""Which member of a queue group gets a message is chance. A lone CR is a blank, too."""
_CLIENT_ID = re.compile(rb'"client_id":[0-9]+,')

_START = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"protocol":1}\r\n'


def turns(rng: random.Random, data: bytes) -> list[list[bytes]]:
    """The same bytes in pieces: each in a turn of its own, or some in a turn."""
    chunks = cuts(rng, data)
    most = 1 if rng.random() < 0.25 else 1 + int(rng.expovariate(1 / TURN_CHUNKS))
    return [chunks[at : at + most] for at in range(0, len(chunks), most)]


REMOTE = RemoteGateway("H", (GatewayUrl("h", 7222),))


class Nodes(Target):
    """A node and its innocent client."""

    options: Options | None = None
    user = ""

    def __init__(self) -> None:
        self.used = 0
        self.begin()

    def begin(self) -> None:
        """A new node."""
        self.used = 0
        self._let_go()
        self.play = NodePlay(self.options)
        self.innocent = self.play.connect(self.user)
        self.innocent.subscribe("innocent")

    def _let_go(self) -> None:
        """Free the node before: it refers to itself, and holds megabytes of a simulated disk.

        The runner takes what is there at its start out of the collector's sight, and so the
        first node, which would stay for good.
        """
        kinds = (NodePlay, PlayClient)
        names = [name for name, held in vars(self).items() if isinstance(held, kinds)]
        if not names:
            return
        for name in names:
            delattr(self, name)
        frozen = gc.get_freeze_count() > 0
        gc.unfreeze()
        gc.collect()
        if frozen:
            gc.freeze()

    def hostile(self, data: bytes, rng: random.Random) -> None:
        """Carry the input out."""
        raise NotImplementedError

    def run(self, data: bytes, rng: random.Random) -> None:
        # Not where the need shows: frames and tracebacks there would hold the node before.
        if self.used >= INPUTS_PER_NODE or self.play.exit is not None:
            self.begin()
        self.used += 1
        try:
            self.hostile(data, rng)
            self.check_innocent()
        except Exception:
            self.used = INPUTS_PER_NODE
            raise

    def check_innocent(self) -> None:
        """Somebody else is still served."""
        assert self.play.exit is None, f"the node ends: {self.play.exit}"
        client = self.innocent
        client.lines.clear()
        client.messages.clear()
        client.send(b"PING\r\nPUB innocent 2\r\nhi\r\n")
        assert b"PONG" in client.lines, f"an innocent client hears only {client.lines}"
        assert ("innocent", "", b"hi") in client.messages, "and gets its messages"


class Session(Nodes):
    """A client's bytes, from the first one on; whole and in pieces they do the same."""

    name = "client-session"
    options = Options(server_name="n1")
    share = 0.2
    words = (
        b"PUB a 5\r\nhello\r\n", b"SUB > 9\r\n", b"SUB a.* q 2\r\n", b"UNSUB 9 1\r\n", b"PING\r\n",
        b'CONNECT {"verbose":true,"pedantic":true,"headers":true}\r\n', b'{"echo":false}', b"PONG",
        b"HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", b'"no_responders":true', b"$SYS.REQ.SERVER.PING",
        b"." * 100, b"*." * 1000, b"a." * 1000, b'"user":"\\ud800"', b"[" * 1500, b"\xed\xa0\x80",
        b"CONNECT " + b'{"a":' * 700 + b"1" + b"}" * 700 + b"\r\n", b'"protocol":' + b"9" * 4400,
    )  # fmt: skip

    samples = (

            _START + b"SUB a 1\r\nPUB a 5\r\nhello\r\nPING\r\n",
            _START + b"SUB a.> q 1\r\nSUB b 2\r\nPUB a.b r 3\r\nabc\r\nUNSUB 2\r\nPING\r\n",
            _START + b"SUB a 1\r\nHPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\nUNSUB 1 1\r\n",
            _START + b"PUB a 1\r\nx\r\n" * 20 + b"SUB * 1\r\nSUB > 2\r\nPUB a.b 1\r\ny\r\n",
            b"PING\r\nPONG\r\n", b'CONNECT {"verbose":true,"no_responders":true,"headers":true}\r\n'
            b"PUB nobody r 0\r\n\r\nSUB r 1\r\nPUB nobody r 0\r\n\r\n",
            )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return list(self.samples)

    def hostile(self, data: bytes, rng: random.Random) -> None:
        whole = self._heard([[data]])
        pieces = self._heard(turns(rng, data))
        whole, pieces = (_CLIENT_ID.sub(b"", one) for one in (whole, pieces))
        if b"-ERR" not in whole + pieces and len(_QUEUES.findall(data)) < 2:
            assert whole == pieces, f"{whole!r} is not {pieces!r}"

    def _heard(self, turns: list[list[bytes]]) -> bytes:
        play = self.play
        conn, play._next_conn = play._next_conn, play._next_conn + 1
        client = play.clients[conn] = _Listener(play, conn)
        play.turn(accepted=[Accepted(conn, ConnKind.CLIENT, "127.0.0.1", 40000)])
        client.heard.clear()
        for chunks in turns:
            play.turn(chunks=[(conn, chunk) for chunk in chunks])
        play.hang_up(client)
        del play.clients[conn]
        return b"".join(client.heard)


class Routes(Nodes):
    """What comes on a route's connection: before its handshake and behind it."""

    name = "route-session"
    share = 0.1
    options = Options(server_name="n1", cluster=ClusterOptions(name="C", port=6222))
    words: Sequence[bytes] = (
        *RouteParser.words,
        *RouteHandshake.words,
        b"$JSC.",
        b"$SYS._INBOX.",
        b"$SYS.>",
    )
    kind = ConnKind.ROUTE

    def seeds(self) -> list[bytes]:
        hello = b'INFO {"server_id":"NX","server_name":"x","cluster":"C","host":"h","port":1}\r\n'
        known = [b"CONNECT " + data + b"\r\n" for data in RouteHandshake().seeds()]
        told = [hello + data for data in RouteParser().seeds()]
        return [*known, *told, *[known[-1] + data for data in told], hello.replace(b"NX", b"")]

    def accepted(self, data: bytes) -> Accepted:
        """The connection that the input comes on."""
        return Accepted(self.play._next_conn, self.kind, "127.0.0.1", 50000)

    def hostile(self, data: bytes, rng: random.Random) -> None:
        made = self.accepted(data)
        play, conn = self.play, made.conn
        play._next_conn += 1
        play.clients[conn] = peer = _Listener(play, conn)
        play.turn(accepted=[made])
        for chunks in turns(rng, data):
            play.turn(chunks=[(conn, chunk) for chunk in chunks])
        if rng.random() < 0.02:
            play.run(0.3)
        play.hang_up(peer)
        del play.clients[conn]


class LeafNodes(Routes):
    """What comes from a leaf node that connects here."""

    name = "leaf-session"
    options = Options(server_name="n1", leafnodes=LeafNodeOptions(port=7422))
    words = (
        b"LMSG ", b"LS+ ", b"LS- ", b"PING\r\n", b"PONG\r\n", b"\r\n", b" | ", b" + ", b" 5",
        b"$LDS.x", b"$JS.hub.API.", b"$JS.API.", b"999999999", b"A" * 300, b"NATS/1.0\r\n\r\n",
        b"CONNECT {}\r\n", b"INFO {}\r\n", b"-ERR 'Loop detected'\r\n", b'"is_hub":true', b"*.>",
        b'"deny_pub":["a.*"]', b'"remote_account":"$G"', b'"domain":"d"', b'"isolate":true',
        b'"cluster":"C"', b'"version":"1.0"', b'"\\ud800"', b"[" * 1200, b'{"a":' * 300,
        b"9" * 5000,
    )  # fmt: skip
    kind = ConnKind.LEAF
    hello = b'CONNECT {"server_id":"NX","name":"x","version":"2.15.1","headers":true}\r\n'

    def seeds(self) -> list[bytes]:
        told = (
            b"LS+ a.>\r\nLS+ a q 3\r\nLS- a q\r\nLMSG innocent 2\r\nho\r\nPING\r\n",
            b"LMSG a + r q1 q2 3\r\nabc\r\nLMSG a | q 0\r\n\r\nLMSG a r 0\r\n\r\n",
            b"LS+ $LDS.x\r\nHMSG a r 12 14\r\nNATS/1.0\r\n\r\nhi\r\nLS- $LDS.x\r\nPONG\r\n",
            b"LS+ innocent\r\nLS+ > q 1\r\nPING\r\n-ERR 'Authorization Violation'\r\n",
        )
        return [self.hello, *told, *[self.hello + data for data in told]]


class Hubs(LeafNodes):
    """What comes from the hub that this server hangs on."""

    name = "hub-session"
    options = Options(
        server_name="n1",
        leafnodes=LeafNodeOptions(remotes=(LeafRemote(urls=(LeafUrl("h"),)),), reconnect_ns=1),
    )
    hello = (
        b'INFO {"server_id":"NX","server_name":"x","version":"2.15.1","headers":true,'
        b'"nonce":"n","remote_account":"$G","connect_info":true}\r\n'
    )

    def accepted(self, data: bytes) -> Accepted:
        if not self.play.dials:
            self.play.run(DIALS_AGAIN_S)
        if not self.play.dials:  # It waits for longer behind some errors.
            self.begin()
        made = super().accepted(data)
        dial = self.play.dials.pop()
        made.dial_token, made.remote_host, made.remote_port = dial.token, dial.host, dial.port
        return made


class Gateways(Routes):
    """What comes on a connection of another cluster: one that it made, or one that was dialed."""

    name = "gateway-session"
    options = Options(
        server_name="n1",
        cluster=ClusterOptions(name="G"),
        gateway=GatewayOptions("G", "127.0.0.1", 7222, remotes=(REMOTE,)),
    )
    kind = ConnKind.GATEWAY
    words = (
        *Routes.words, b"A+ $G\r\n", b"A- $G\r\n", b"_GR_.", b"_GR_.aaaaaa.bbbbbb.",
        b'"gateway":"H"', b'"gateway_cmd":1', b'"gateway_cmd":2', b'"gateway_cmd_payload":"JEc="',
        b'"gateway_urls":["h:7222"]', b'"gateway_iom":true',
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        info = b'INFO {"server_id":"NX","server_name":"x","gateway":"H","gateway_urls":["h:1"]}\r\n'
        hello = b'CONNECT {"gateway":"H"}\r\n' + info
        told = RouteParser().seeds()
        begun = b'INFO {"gateway":"H","gateway_cmd":2,"gateway_cmd_payload":"JEc="}\r\n'
        mine = mark("G") + b"." + mark("N") + b".in.1"
        asked = (
            b"RMSG $G _GR_." + mine + b" 1\r\nx\r\nRMSG $G innocent _GR_.a23456.b23456.r 1\r\ny\r\n"
        )
        return [
            *[hello + data for data in told], *[info + data for data in told], hello + asked,
            info + begun + b"RS+ $G a\r\nRS+ $G b q 1\r\nRS- $G a\r\nA+ $G\r\n",
            info + info.replace(b'"H"', b'"I"').replace(b'"x"', b'"x","gateway_cmd":1'),
        ]  # fmt: skip

    def accepted(self, data: bytes) -> Accepted:
        made = super().accepted(data)
        made.dial_token = 0 if data.startswith(b"CONNECT") else self._dialed()
        return made

    def _dialed(self) -> int:
        """The token of a dial that is under way, if there is one."""
        gates = self.play.node.gates
        assert gates is not None
        tokens = [one.token for one in gates.connections.remotes.clusters.values()]
        return max(tokens, default=0)


class _Listener(PlayClient):
    """Keeps what it is sent as it is: hostile input makes lines that nobody parses."""

    def __init__(self, play: NodePlay, conn: int) -> None:
        super().__init__(play, conn)
        self.heard: list[bytes] = []  # type: ignore[assignment]  # bytes instead of documents

    def take(self, data: bytes) -> None:
        self.heard.append(data)


class Api(Nodes):
    """Every subject of the JetStream and system API: `subject`, a line feed, and the body."""

    name = "api"
    share = 0.05
    user = "a"

    def begin(self) -> None:
        super().begin()
        self.asker = self.play.connect("a")
        self.system = self.play.connect("sys")
        for subject, body in requests.FIRST:
            self.asker.request(subject, body)

    def seeds(self) -> list[bytes]:
        made = [(s, json.dumps(b).encode() if b is not None else b"") for s, b in requests.KNOWN]
        return [subject.encode() + b"\n" + body for subject, body in made]

    def make(self, rng: random.Random, pool: list[bytes]) -> bytes:
        if rng.random() < 0.2:
            return mutated(rng, pool[int(rng.random() * len(pool))], requests.WORDS, SIZE_MAX)
        return requests.made(rng)

    def hostile(self, data: bytes, rng: random.Random) -> None:
        subject, _, body = data.partition(b"\n")
        if not subject or any(byte <= 32 for byte in subject) or b".." in subject:
            return
        asker = self.system if subject.startswith(b"$SYS") and rng.random() < 0.8 else self.asker
        asker.messages.clear()
        asker.lines.clear()
        asker._asked += 1
        inbox = b"_INBOX.%d" % asker._asked
        asker.send(b"SUB %b %d\r\n" % (inbox, asker._asked))
        asker.send(b"PUB %b %b %d\r\n%b\r\n" % (subject, inbox, len(body), body))
        asker.send(b"UNSUB %d\r\n" % asker._asked)
        if rng.random() < 0.02:
            self.play.run(0.3)
        for to, _, answer in asker.messages:
            if to == inbox.decode() and subject.startswith(b"$JS.API.STREAM"):
                assert "type" in json.loads(answer), "an answer says what it is"
        if any(line.startswith(b"-ERR") for line in asker.lines):
            self.used = INPUTS_PER_NODE


class Pages(Nodes):
    """Pages of the monitoring port with any parameters: `path?name=value&...`."""

    name = "monitoring"
    share = 0.1
    user = "a"
    words = (
        b"offset=", b"limit=", b"-1", b"subs=detail", b"auth=1", b"sort=", b"acc=A", b"state=any",
        b"cid=", b"filter_subject=a.>", b"streams=1", b"consumers=true", b"9" * 5000, b"&", b"=",
        b"\xff", b"leader_only=1", b"js-enabled-only=1", b"test=a.b", b"raft=1", b"accounts=1",
    )  # fmt: skip
    paths = ("varz", "connz", "subsz", "routez", "jsz", "accountz", "accstatz", "healthz", "raftz",
             "ipqueuesz", "gatewayz", "leafz", "stacksz", "", "none")  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [f"/{path}?limit=5&offset=1".encode() for path in self.paths]

    def hostile(self, data: bytes, rng: random.Random) -> None:
        path, _, query = data.decode("latin-1").partition("?")
        pairs = (pair.partition("=") for pair in query.split("&"))
        params = {name: value for name, _, value in pairs}
        self.play.answers.clear()
        self.play.turn(queries=[Query(1, path, params)])
        (answer,) = self.play.answers
        assert 200 <= answer.status < 600
        if answer.content_type == "application/json" and answer.status == 200:
            json.loads(answer.body)


TARGETS = (Session, Routes, LeafNodes, Hubs, Gateways, Api, Pages)
