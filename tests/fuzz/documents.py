"""Bodies of all requests of the JetStream and system API, as far as the decision on them.

A node stands there, and nothing is carried out: handlers and services decide on what they read,
and stay what they were. What they take is what can be written down and read again, as the log of
the meta group and the snapshots do; what is filled in once is not filled in again.
"""

import json
import random
from contextlib import suppress
from dataclasses import is_dataclass

from jsctl.api import jsontext
from jsctl.api import requests as bodies
from jsctl.api.codec import DecodeError, decode, dumps, loads
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.pull import ConsumerGetNextRequest
from jsctl.api.stream import StreamConfig
from jsctl.api.words import Retention
from jsctl.broker.handlers import api, direct
from jsctl.broker.handlers.decisions import ProposeMeta, RemoveMetaPeer, Replies, Reply, StepDown
from jsctl.broker.jetstream.consumers import config as consumer_rules
from jsctl.broker.jetstream.consumers.defaults import with_defaults
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.entries import assignment_from, check_entry
from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.broker.jetstream.streams import config as stream_rules
from jsctl.broker.protocol import headers
from jsctl.broker.subject.validity import is_valid_subject
from jsctl.broker.system.monitoring.live_view import MonitorView
from jsctl.broker.system.requests import Requester, SysReply, SysRequest, SysServices
from tests.fuzz import requests
from tests.fuzz.mutate import inside, mutated, value
from tests.fuzz.target import SIZE_MAX, Target
from tests.support.node_play import NodePlay

KINDS: tuple[type[object], ...] = (
    *(kind for kind in vars(bodies).values()
      if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == bodies.__name__),
    ConsumerGetNextRequest,
)  # fmt: skip
"""All that a body may be."""
STREAMS = (
    StreamConfig(name="S", subjects=("s.>",)),
    StreamConfig(name="S", subjects=("s.>",), num_replicas=3, retention=Retention.WORK_QUEUE),
)
FIRST = (
    *requests.FIRST,
    ("$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["s.>"],"storage":"memory"}'),
    ("$JS.API.CONSUMER.CREATE.S.C",
     b'{"stream_name":"S","config":{"name":"C","durable_name":"C","ack_policy":"explicit"}}'),
)  # fmt: skip
NAME = "C"
"""Of streams and of consumers."""
_CONSUMER = requests.CONSUMER["config"]
assert isinstance(_CONSUMER, dict)
CONFIGS: tuple[tuple[bytes, dict[str, object]], ...] = (
    (b"$JS.API.STREAM.CREATE.C", {**requests.STREAM, "name": NAME}),
    (b"$JS.API.CONSUMER.CREATE.S.C", _CONSUMER),
)
DIRECT_GET = "$JS.API.DIRECT.GET."
LEVEL = b"Nats-Required-Api-Level"
NUMBERS = ("$SYS.REQ.ACCOUNT.NSUBS", "$SYS.DEBUG.SUBSCRIBERS")
"""Answered with a number, and nothing around it."""


class Documents(Target):
    """See the module."""

    name = "api-json"

    def __init__(self) -> None:
        self.play = NodePlay()
        client = self.play.connect("a")
        for subject, body in FIRST:
            client.request(subject, body)
        node = self.play.node
        assert node.jetstream is not None and node._running is not None
        self.view = node.jetstream.view
        self.monitor = MonitorView(node._running.server).look(self.play.now_ns)
        self.services = SysServices(lambda: "ID")
        kept = self.view.engine.assets.streams[("A", "KEPT")]
        self.stream = kept.stream

    def seeds(self) -> list[bytes]:
        made = [(s, json.dumps(b).encode() if b is not None else b"") for s, b in requests.KNOWN]
        return [subject.encode() + b"\n" + body for subject, body in made]

    def make(self, rng: random.Random, pool: list[bytes]) -> bytes:
        roll = rng.random()
        if roll < 0.2:
            return mutated(rng, pool[int(rng.random() * len(pool))], requests.WORDS, SIZE_MAX)
        made = nearly(rng) if rng.random() < 0.3 else requests.made(rng)
        return doubled(rng, made) if roll < 0.3 else made

    def run(self, data: bytes, rng: random.Random) -> None:
        subject, _, body = data.partition(b"\n")
        if any(byte <= 32 for byte in subject):
            return
        document = read(body)
        if document is not None:
            for kind in KINDS:
                check_kind(kind, document)
        text = subject.decode("utf-8", "replace")
        if text.startswith(DIRECT_GET):
            self._get(body, text.removeprefix(DIRECT_GET).partition(".")[2].encode())
        elif text.startswith("$SYS"):
            self._serve(text, body, rng)
        else:
            self._decide(subject, body, rng)

    def _get(self, body: bytes, subject: bytes) -> None:
        found, rest = direct.begin(self.stream, body, subject)
        for piece in [found.messages, *(rest or ())]:
            for reply in piece:
                headers.status(reply.headers)

    def _serve(self, subject: str, body: bytes, rng: random.Random) -> None:
        who = Requester("$SYS" if rng.random() < 0.8 else "A")
        outcome = self.services.serve(self.monitor, SysRequest(subject, "r", b"", body, who))
        if isinstance(outcome, SysReply):
            answer = json.loads(outcome.payload)
            assert isinstance(answer, int) == (subject in NUMBERS), "an answer is an object"

    def _decide(self, subject: bytes, body: bytes, rng: random.Random) -> None:
        resolved = api.resolve(subject)
        if resolved is None:
            return
        level = headers.build([(LEVEL, body[:5].replace(b"\n", b""))])
        request = ApiRequest(
            "A", subject, b"r", level if rng.random() < 0.05 else b"", body,
            ClientInfo("A", conn=1), self.view.me, system=rng.random() < 0.5,
        )  # fmt: skip
        decision = api.answer(self.view, request, resolved)
        replies: list[bytes | None] = []
        match decision:
            case Reply():
                replies = [decision.payload]
            case Replies():
                replies = [one.payload for one in decision.messages]
            case ProposeMeta() | RemoveMetaPeer():
                replies = [decision.reply]
                for entry in decision.entries:
                    self._check_entry(entry)
            case StepDown():
                replies = [decision.reply]
        for reply in replies:
            assert reply is None or "type" in json.loads(reply), "an answer says what it is"

    def _check_entry(self, entry: bytes) -> None:
        """What goes into the log of the meta group is understood by those who apply it."""
        check_entry(entry)
        document = jsontext.parse_object(entry)
        if document["op"] not in ("stream", "consumer"):
            return
        made = assignment_from(document)
        if isinstance(made, StreamAssignment):
            assert stream_rules.checked(made.config) == made.config
        elif isinstance(made, ConsumerAssignment):
            stream = self.view.meta.stream("A", made.stream)
            assert stream is not None
            consumer_rules.check(made.config, stream.config)


def nearly(rng: random.Random) -> bytes:
    """A stream or consumer with few fields, and a value of the right kind that may be wrong."""
    subject, known = rng.choice(CONFIGS)
    fields = rng.sample(list(known), 1 + int(rng.random() * 6))
    made: dict[str, object] = {"name": NAME, **{field: known[field] for field in fields}}
    changed = rng.choice(fields)
    made[changed] = inside(rng, made[changed])
    whole = {"stream_name": "S", "config": made} if b"CONSUMER" in subject else made
    return subject + b"\n" + json.dumps(whole).encode()


def doubled(rng: random.Random, made: bytes) -> bytes:
    """A request of which a key is there twice."""
    subject, _, body = made.partition(b"\n")
    keys = [key for key in (*requests.STREAM, *requests.CONSUMER) if key.encode() in body]
    key = json.dumps(rng.choice(keys) if keys else "name").encode()
    again = key + b":" + json.dumps(value(rng)).encode() + b","
    place = rng.choice([at for at, byte in enumerate(body) if byte == ord("{")] or [0])
    return subject + b"\n" + body[: place + 1] + again + body[place + 1 :]


def read(body: bytes) -> object:
    """The document, or None. What is read can be written down, and is read as the same."""
    try:
        document = jsontext.parse(body)
    except DecodeError as error:
        str(error).encode()
        return None
    assert jsontext.parse(dumps(document)) == document
    return document


def check_kind(kind: type[object], document: object) -> None:
    """A body is refused, or is of a kind, and what it was after it was written down."""
    try:
        made = decode(kind, document, strict=True)
    except DecodeError as error:
        str(error).encode()
        return
    assert loads(kind, dumps(made), strict=True) == made, "a round trip changes nothing"
    with suppress(ApiError):
        if isinstance(made, bodies.StreamConfigRequest):
            check_stream(stream_rules.checked(made.config, pedantic=made.pedantic))
        elif isinstance(made, bodies.ConsumerCreateRequest):
            for stream in STREAMS:
                full = with_defaults(made.config, stream, pedantic=made.pedantic)
                consumer_rules.check(full, stream)
                check_consumer(full, stream)


def check_stream(config: StreamConfig) -> None:
    """A checked config is kept as it is, and may be an update of itself."""
    assert loads(StreamConfig, dumps(config)) == config
    assert all(is_valid_subject(subject.encode()) for subject in config.subjects)
    try:
        assert stream_rules.checked(config) == config, "nothing is left to be filled in"
        assert config.sealed or stream_rules.updated(config, config) == config
    except ApiError as error:
        raise AssertionError(f"what was accepted is refused: {error}") from None
    assert stream_rules.same(config, config)


def check_consumer(config: ConsumerConfig, stream: StreamConfig) -> None:
    """The same for a consumer's."""
    assert loads(ConsumerConfig, dumps(config)) == config
    subjects = (config.deliver_subject, config.filter_subject, *config.filter_subjects)
    assert all(is_valid_subject(subject.encode()) for subject in subjects if subject)
    try:
        assert with_defaults(config, stream) == config, "nothing is left"
        consumer_rules.check(config, stream)
        consumer_rules.check_update(config, config, bound=True)
    except ApiError as error:
        raise AssertionError(f"what was accepted is refused: {error}") from None
    assert consumer_rules.same(config, consumer_rules.with_level(config))
