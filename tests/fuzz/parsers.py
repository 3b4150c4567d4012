"""The parsers of the two wire protocols, and header blocks."""

import random
import re
from collections.abc import Sequence

from jsctl.broker.accel.columns import plain_ids
from jsctl.broker.errors import ProtocolError
from jsctl.broker.jetstream.consumers import acks
from jsctl.broker.jetstream.consumers.dispatch import pull
from jsctl.broker.jetstream.streams import publish_headers
from jsctl.broker.linking.fields import split_url
from jsctl.broker.protocol import client, headers, route
from jsctl.broker.protocol.ops import Bad
from jsctl.broker.routes import wire as mesh_wire
from jsctl.broker.subject.validity import is_valid_subject
from tests.fuzz.mutate import cuts
from tests.fuzz.target import Target

LINE_MAX = 256
PAYLOAD_MAX = 1000


class ClientParser(Target):
    """However a client's bytes are cut, the same operations come out, and none is lost."""

    name = "client-parser"
    words = (
        b"PUB ", b"HPUB ", b"SUB ", b"UNSUB ", b"PING\r\n", b"PONG\r\n", b"CONNECT {}\r\n", b"+OK",
        b"INFO {}", b"-ERR 'x'", b"\r\n", b" 5", b"999999999", b"NATS/1.0\r\n\r\n", b"A" * 300,
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            b"PUB a 5\r\nhello\r\nPING\r\n",
            b"PUB a r 3\r\nabc\r\nPUB b 0\r\n\r\n",
            b"HPUB a r 12 14\r\nNATS/1.0\r\n\r\nhi\r\nPONG\r\n",
            b'CONNECT {"verbose":false}\r\nSUB a.> q 1\r\nUNSUB 1 5\r\n',
            b"SUB a 1\r\nSUB b 2\r\nUNSUB 1\r\n+OK\r\n-ERR 'no'\r\nINFO {}\r\n",
        ]

    def run(self, data: bytes, rng: random.Random) -> None:
        whole = client.ClientParser(LINE_MAX, PAYLOAD_MAX).feed(data)
        parser = client.ClientParser(LINE_MAX, PAYLOAD_MAX)
        pieces = [op for piece in cuts(rng, data) for op in parser.feed(piece)]
        assert _same(whole, pieces), f"{whole} is not {pieces}"
        assert not any(isinstance(op, Bad) for op in whole[:-1]), "nothing follows what is bad"
        if whole and isinstance(whole[-1], Bad):
            assert parser.feed(b"PING\r\n") == [], "a dead parser is dead"


class RouteParser(Target):
    """The same for a route's bytes."""

    name = "route-parser"
    words = (
        b"RMSG ", b"HMSG ", b"RS+ ", b"RS- ", b"LS+ ", b"LS- ", b"LMSG ", b"PING\r\n", b"PONG\r\n",
        b"CONNECT {}\r\n", b"INFO {}\r\n", b"\r\n", b" | ", b" + ", b" $G ", b" 5", b"999999999",
        b"-ERR 'x'\r\n", b"A" * 300, b"NATS/1.0\r\n\r\n",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            b"RMSG $G a 5\r\nhello\r\nPING\r\n",
            b"RMSG $G a + r q1 q2 3\r\nabc\r\nRMSG $G a | q 0\r\n\r\n",
            b"HMSG $G a r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
            b"RS+ $G a.>\r\nRS+ $G a q 3\r\nRS- $G a q\r\nLS+ o $G a\r\n",
            b'INFO {"server_id":"N"}\r\nCONNECT {"name":"N"}\r\nPONG\r\n',
        ]

    def run(self, data: bytes, rng: random.Random) -> None:
        account = b"A" if rng.random() < 0.3 else b""
        whole = route.RouteParser(LINE_MAX, PAYLOAD_MAX, account).feed(data)
        parser = route.RouteParser(LINE_MAX, PAYLOAD_MAX, account)
        pieces = [op for piece in cuts(rng, data) for op in parser.feed(piece)]
        assert _same(whole, pieces), f"{whole} is not {pieces}"
        assert not any(isinstance(op, Bad) for op in whole[:-1]), "nothing follows what is bad"


def _same(whole: Sequence[object], pieces: Sequence[object]) -> bool:
    """Equal, but for the reason for which the connection ends: it may be seen earlier."""
    if whole == pieces:
        return True
    ended = bool(whole and pieces) and isinstance(whole[-1], Bad) and isinstance(pieces[-1], Bad)
    return ended and whole[:-1] == pieces[:-1]


class RouteHandshake(Target):
    """INFO and CONNECT of a route are understood, or refused with ProtocolError."""

    name = "route-handshake"
    words = (
        b'"server_id":', b'"port":', b'"cluster":', b"null", b"true", b"1e999", b'"\\ud800"',
        b'"connect_urls":["a"]', b"[" * 1200, b'{"a":' * 300, b'"nonce":"x"', b"9" * 5000,
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            b'{"server_id":"N","server_name":"n","cluster":"C","host":"h","port":6222,"proto":2}',
            b'{"server_id":"N","connect_urls":["h:4222"],"route_pool_size":3,"ldm":true,"ip":"u"}',
            b'{"name":"N","cluster":"C","user":"u","pass":"p","lang":"","gateway":""}',
        ]

    def run(self, data: bytes, rng: random.Random) -> None:
        for parse in (mesh_wire.parse_info, mesh_wire.parse_connect):
            try:
                made = parse(data)
            except ProtocolError:
                continue
            if isinstance(made, mesh_wire.RouteInfo):
                line = mesh_wire.gossip_line(made, "nats-route://h:1/", 0)
                again = mesh_wire.parse_info(line[5:])
                assert again.server_id == made.server_id
                split_url(made.ip)


HEADER_LINE = re.compile(rb"\r\n([^:\r\n]+):[ ]*([^\r\n]*)(?=\r\n)")


def pairs_of(block: bytes) -> list[tuple[bytes, bytes]]:
    """All headers of a block, in order, repeated keys included."""
    return [(found[1], found[2]) for found in HEADER_LINE.finditer(block)]


class Headers(Target):
    """What a header block says is found, taken out and put in without touching the rest."""

    name = "headers"
    words = (
        b"NATS/1.0\r\n", b"\r\n", b"\r\n\r\n", b": ", b"Nats-Msg-Id: ", b"Nats-TTL: ", b"a:b",
        b" 503", b"Nats-Expected-Last-Sequence: 5", b"NATS/1.0 100 Idle Heartbeat\r\n",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            headers.build([(b"Nats-Msg-Id", b"1"), (b"Nats-TTL", b"1h"), (b"a", b"b")]),
            headers.build_status(409, b"Gone", [(b"Nats-Pending-Messages", b"5")]),
            b"NATS/1.0\r\nk:v\r\nk: v2\r\nNats-Rollup:sub\r\n\r\n",
        ]

    def run(self, data: bytes, rng: random.Random) -> None:
        pairs = pairs_of(data)
        headers.status(data)
        publish_headers.nats_fields(data)
        plain_ids([data])
        publish_headers.parse_ttl(data)
        if not data.startswith(headers.VERSION + b"\r\n") or not data.endswith(b"\r\n\r\n"):
            return
        for key in {key for key, _ in pairs[:3]} | {b"Nats-Msg-Id"}:
            bare = headers.remove(data, key)
            assert headers.get(bare, key) is None
            made = headers.set_value(data, key, b"new")
            assert headers.get(made, key) == b"new", "what was set is there"
        clean = [pair for pair in pairs if pair == (pair[0].strip(), pair[1].strip())]
        built = headers.build(clean)
        assert pairs_of(built) == clean


class Words(Target):
    """Requests for messages and acknowledgements, as clients write them."""

    name = "pull-and-ack"
    words = (
        b"+NAK", b"-NAK", b"+ACK", b"+WPI", b"+NXT", b"+TERM", b'{"delay":', b'"batch":', b"1e999",
        b'"expires":', b'"max_bytes":', b'"no_wait":true', b'"group":"\\ud800"', b"[" * 1200,
        b"9" * 5000, b"NaN",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            b'{"batch":10,"expires":1000000000,"no_wait":true,"max_bytes":100}',
            b'{"batch":1,"idle_heartbeat":5000000000,"group":"g","priority":3,"id":"x"}',
            b"10", b"-NAK 5s", b'-NAK {"delay":1000}', b"+TERM why", b"", b'+NXT {"batch":3}',
        ]  # fmt: skip

    def run(self, data: bytes, rng: random.Random) -> None:
        made = pull.parse(b"reply", data, 10**18)
        assert isinstance(made, str | pull.PullRequest)
        delay = acks.nak_delay(data)
        assert delay is None or isinstance(delay, int)
        is_valid_subject(data)


TARGETS = (ClientParser, RouteParser, RouteHandshake, Headers, Words)
