"""A minute of the fuzzer, the corpus, and proof that it finds what is wrong."""

import gc
import json
import random
import weakref
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

import pytest

from jsctl.api import jsontext
from jsctl.broker.errors import ProtocolError
from jsctl.broker.jetstream.consumers import config as consumer_config
from jsctl.broker.jetstream.streams import config as stream_config
from jsctl.broker.protocol import client
from jsctl.broker.server.http import http_connection
from jsctl.broker.system.monitoring import params
from tests.fuzz import documents, monitoring_port, mutate, nodes, parsers
from tests.fuzz.formats import Decoder
from tests.fuzz.runner import fuzz, minimized
from tests.fuzz.target import CORPUS
from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow

INPUTS = {
    "lane": 200,
    "lane-tables": 1000,
    "live": 250,
    "api": 3000,
    "client-session": 2500,
    "route-session": 2500,
    "leaf-session": 1500,
    "hub-session": 1500,
    "wal": 600,
}
"""What a target gets in a few seconds; `monitoring` and all parsers get the default."""
INPUTS_DEFAULT = 4000
QUICK_SHARE = 0.05
"""Of these inputs, what a quick run has time for."""
PROCESSES = {"live"}
"""The targets that start a broker."""
PLANTED_INPUTS = 20_000
"""A mistake is found within so many."""
SEED = 1


@pytest.fixture(scope="module", autouse=True)
def looked_through() -> Iterator[None]:
    """What other tests left is looked through by the collector once, not at every run."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # As it was, but for what these tests left: see `conftest`


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.processes if name in PROCESSES else ())
        for name in TARGETS
    ],
)
def test_a_target_holds(name: str, pytestconfig: pytest.Config) -> None:
    share = QUICK_SHARE if pytestconfig.getoption("quick") else 1
    target = TARGETS[name]()
    try:
        outcome = fuzz(target, seed=SEED, inputs=int(INPUTS.get(name, INPUTS_DEFAULT) * share))
    finally:
        target.close()
    assert not outcome.findings, "\n\n".join(one.text() for one in outcome.findings)


def test_every_directory_of_the_corpus_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} <= set(TARGETS)


def test_the_same_seed_makes_the_same_inputs() -> None:
    for name in ("client-parser", "api", "configuration"):
        target = TARGETS[name]()
        made = [
            [target.make(random.Random(seed), target.seeds()) for seed in range(50)]
            for _ in range(2)
        ]
        target.close()
        assert made[0] == made[1]
        assert len(set(made[0])) > 40, f"inputs for {name} differ"


def test_requests_are_wrong_in_all_ways() -> None:
    bodies = [mutate.document(random.Random(seed), {"a": 1, "b": "x"}) for seed in range(300)]
    values = [value for body in bodies for value in json.loads(body).values()]
    kinds = {type(value) for value in values}
    assert {int, str, list, dict, bool, float, type(None)} <= kinds
    assert any(isinstance(v, str) and "\ud800" in v for v in values)
    assert any(isinstance(v, int) and v > 2**64 for v in values)


def test_a_mistake_is_found_made_small_and_told() -> None:
    def decode(data: bytes) -> object:
        if b"\xff" in data[2:]:
            raise KeyError("not this format's error")
        if len(data) < 2:
            raise ProtocolError("short")
        return data

    outcome = fuzz(Decoder("planted", [b"abcdefgh"], decode, ProtocolError), seed=3, inputs=3000)
    (finding,) = outcome.findings
    assert len(finding.data) == 3
    assert finding.data[2:] == b"\xff"
    assert "KeyError" in finding.text()
    assert "--target planted --from 3" in finding.text()


def test_a_decoder_that_changes_what_it_reads_is_found() -> None:
    target = Decoder(
        "planted",
        [b"abcdefgh"],
        lambda data: data.replace(b"\x00", b""),
        ProtocolError,
        lambda made: bytes(made) + b"\x00x",  # type: ignore[call-overload]  # bytes all along
    )
    assert "round trip" in fuzz(target, seed=1, inputs=100).findings[0].error


def test_a_slow_input_is_a_finding() -> None:
    def decode(data: bytes) -> object:
        return sum(n for n in range(300_000 if b"z" in data else 3))

    target = Decoder("planted", [b"abc", b"z"], decode, ProtocolError)
    target.cost_s_max = 0.002
    (finding,) = fuzz(target, seed=1, inputs=1).findings
    assert finding.data == b"z"
    assert "takes" in finding.error


def test_a_parser_that_depends_on_the_cuts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = client.ClientParser.feed
    monkeypatch.setattr(
        client.ClientParser,
        "feed",
        lambda self, chunk: whole(self, chunk) if len(chunk) != 1 else [],
    )
    assert fuzz(parsers.ClientParser(), seed=1, inputs=300).findings


def _split(target: str) -> object:
    try:
        return urlsplit(target)
    except ValueError:
        raise KeyError(target) from None


def _unquote(path: str) -> str:
    return unquote(path, errors="surrogateescape")


def _waits_not(self: http_connection.MonitorConnection, wait_ns: int | None) -> None:
    """No deadlines."""


def _refuses_and_goes_on(self: http_connection.MonitorConnection, status: HTTPStatus) -> None:
    self.respond(status, http_connection.TEXT, b"no")


def _falls(self: http_connection.MonitorConnection, data: bytes) -> None:
    if len(data) > 1:
        TAKE(self, data)


TAKE = http_connection.MonitorConnection.data_received


@pytest.mark.parametrize(
    ("place", "name", "mistake", "told"),
    [
        (http_connection, "urlsplit", _split, "KeyError"),
        (http_connection, "unquote", _unquote, "surrogates not allowed"),
        (http_connection.MonitorConnection, "_wait", _waits_not, "0 deadlines run"),
        (http_connection.MonitorConnection, "_refuse", _refuses_and_goes_on, ""),
        (http_connection.MonitorConnection, "data_received", _falls, "is not"),
        (params, "INT_MAX", 2**70, "beyond 64 bits"),
    ],
)
def test_a_mistake_of_the_monitoring_port_is_found(
    place: object, name: str, mistake: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, mistake)
    outcome = fuzz(monitoring_port.Http(), seed=1, inputs=PLANTED_INPUTS, findings_max=1)
    assert outcome.findings
    assert any(told in finding.error for finding in outcome.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "name", "mistake", "told"),
    [
        (jsontext, "_check_surrogates", lambda document: None, ""),
        (jsontext, "_DECODER", json.JSONDecoder(), ""),
        (stream_config, "is_valid_subject", lambda subject: True, ""),
        (stream_config, "_or_unlimited", lambda number: number - 1, "is left to be filled in"),
        (consumer_config, "parse_time", int, ""),
    ],
)
def test_a_mistake_with_documents_is_found(
    place: object, name: str, mistake: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = documents.Documents()
    monkeypatch.setattr(place, name, mistake)
    outcome = fuzz(target, seed=1, inputs=PLANTED_INPUTS, findings_max=1)
    assert outcome.findings
    assert any(told in finding.error for finding in outcome.findings)


@pytest.mark.parametrize("name", ["api", "monitoring"])
def test_a_node_that_is_done_with_is_freed(name: str) -> None:
    target = TARGETS[name]()
    assert isinstance(target, nodes.Nodes)
    play = weakref.ref(target.play)
    gc.freeze()  # As the runner does with a target that is made before its first run
    target.used = nodes.INPUTS_PER_NODE
    fuzz(target, seed=SEED, inputs=1)
    assert play() is None, "a run of millions of inputs would hold all nodes of its beginning"


def test_what_fails_is_made_small() -> None:
    assert minimized(b"a" * 500 + b"X" + b"b" * 500, lambda data: b"X" in data) == b"X"
    assert minimized(b"aXbYc", lambda data: b"X" in data and b"Y" in data) == b"XY"
