"""Health checks say the same as those of the real `nats` tool, where it is installed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server
from tests.support import nats_tool

Run = Callable[..., Result]
pytestmark = nats_tool.needed

SPAN = re.compile(r"\b(\d+h)?(\d+m)?\d+(\.\d+)?(µs|ns|ms|s|m|h)\b")
FLOAT = re.compile(r"\b\d+\.\d+(e-\d+)?\b|\b\d+e-\d+\b")
RULE = re.compile(r"[─╭╮╰╯├┤┼┬┴]+|[ ]{2,}")
PORT = re.compile(r"127\.0\.0\.1:\d+")
PASSING = re.compile(r"\b(mem|cpu|connections|subscriptions)=\d+|(Connections|Subscriptions) \d+")

OF_USERS = (
    "connection",
    "connection --connect-critical 1ns --rtt-warn 1ns --req-critical 1us",
    "connection --format text --connect-warn 10s --connect-critical 20s",
    "connection --format prometheus --namespace mine",
    "stream --stream ORDERS --peer-expect 3",
    "stream --stream ORDERS --peer-expect 5",
    "stream --stream ORDERS --peer-expect 3 --peer-lag-critical 10 --peer-seen-critical 1m",
    "stream --stream ORDERS --peer-expect 3 --peer-seen-critical 1ns --format json",
    "stream --stream ORDERS --peer-expect 3 --msgs-warn 9 --msgs-critical 1",
    "stream --stream ORDERS --peer-expect 3 --msgs-critical 3",
    "stream --stream ORDERS --peer-expect 3 --subjects-warn 1 --subjects-critical 5",
    "stream --stream ORDERS --peer-expect 3 --subjects-warn 5 --subjects-critical 1 --format json",
    "stream --stream ORDERS --peer-expect 3 --subjects-critical 5",
    "stream --stream ONE --peer-expect 3",
    "stream --stream ONE --format text",
    "stream --stream ONE --min-sources 1 --max-sources 2",
    "stream --stream ONE --lag-critical 1 --format prometheus",
    "stream --stream MIRROR --lag-critical 100 --seen-critical 1h",
    "stream --stream NOPE",
    "stream --stream 'bad name'",
    "stream",
    "stream --stream ONE --format pdf",
    "stream --stream ONE --lag-critical",
    "consumer --stream ORDERS --consumer PULL",
    "consumer --stream ORDERS --consumer PULL --unprocessed-critical 3 --waiting-critical 1",
    "consumer --stream ORDERS --consumer PULL --last-ack-critical 1s --last-delivery-critical 1s",
    "consumer --stream ORDERS --consumer PULL --pinned --redelivery-critical 1 --format json",
    "consumer --stream ORDERS --consumer NOPE",
    "consumer --stream NOPE --consumer NOPE",
    "consumer --stream ORDERS",
    "message --stream ORDERS --subject orders.1",
    "message --stream ORDERS --subject orders.1 --age-warn 1ms --content ^x",
    "message --stream ORDERS --subject orders.1 --age-critical 1ms --format json",
    "message --stream ORDERS --subject orders.9",
    "message --stream NOPE --subject orders.9",
    "kv --bucket CFG",
    "kv --bucket CFG --key leader --values-warn 1 --values-critical 10",
    "kv --bucket CFG --key gone --values-critical 1",
    "kv --bucket CFG --key nope --values-warn 100 --values-critical 10 --format json",
    "kv --bucket NOPE",
    "kv --bucket ''",
    "kv --bucket 'a b'",
    "request --subject nobody",
    "request --subject '$JS.API.INFO' --match-payload memory",
    "request --subject '$JS.API.INFO' --match-payload ^nothing",
    "jetstream",
    "jetstream --no-replicas --mem-warn 95",
    "jetstream --streams-warn 10 --streams-critical 20 --format json",
    "jetstream --replica-seen-critical 1ns",
    "meta --expect 3 --lag-critical 10 --seen-critical 10s",
    "server --name n1",
    "credential --credential /nope",
    "credential --credential /tmp",
    "credential --credential /etc/hostname",
    "",
    "bogus",
)
OF_SYSTEM = (
    "meta --expect 3 --lag-critical 1000 --seen-critical 10s",
    "meta --expect 5 --lag-critical 1000 --seen-critical 1ns --format json",
    "server --name n1",
    "server --name n1 --conn-warn 900 --conn-critical 1000 --subs-warn 10 --subs-critical 5",
    "server --name n1 --js-required --tls-required --auth-required --uptime-critical 1ns",
    "server --name n1 --uptime-warn 1000h --uptime-critical 1ns --cpu-warn 9",
    "server --name n1 --mem-warn 1 --mem-critical 2 --tls-cert-warn 1d --tls-cert-crit 1h",
    "server --name nope --timeout 1s",
)


def normal(text: str) -> str:
    """Without times, and without the lines of tables, whose length follows them."""
    text = SPAN.sub("T", FLOAT.sub("F", PORT.sub("HOST", text)))
    return RULE.sub(" ", PASSING.sub("N", text))


@pytest.fixture
def filled(run: Run, publish: Callable[..., None]) -> Run:
    """Streams, a consumer and a bucket that checks can look at."""
    for words in (
        ("ORDERS", "--subjects", "orders.*", "--replicas", "3"),
        ("ONE", "--subjects", "one"),
        ("MIRROR", "--mirror", "ORDERS"),
        ("KV_CFG", "--subjects", "$KV.CFG.>", "--max-msgs-per-subject", "5"),
    ):
        assert run("stream", "add", *words, "--defaults").code == 0
    for number in range(3):
        publish(f"orders.{number}", b"hello")
    publish("$KV.CFG.leader", b"n1")
    publish("$KV.CFG.gone", b"", {"KV-Operation": "DEL"})
    assert run("consumer", "add", "ORDERS", "PULL", "--pull", "--defaults").code == 0
    return run


def test_checks_of_users_are_the_same(filled: Run, server: Server) -> None:
    lines = [f"server check {line}" for line in OF_USERS]
    found = nats_tool.differences(filled, lines, url=server.url, normal=normal)
    assert not found, "\n\n".join(found)


def test_checks_of_the_system_are_the_same(run: Run, server: Server) -> None:
    server.cluster.wait_meta_leader()
    flags = ["--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD]
    lines = [f"server check {line}" for line in OF_SYSTEM]
    found = nats_tool.differences(run, lines, *flags, url=server.url, normal=normal)
    assert not found, "\n\n".join(found)


def test_results_go_to_a_file(run: Run, server: Server, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    words = ("server", "check", "stream", "--stream", "NOPE", "--outfile")
    assert nats_tool.nats("-s", server.url, *words, str(theirs)).returncode == 2
    assert run(*words, str(ours)).code == 2
    assert ours.read_text() == theirs.read_text()
    assert ours.stat().st_mode == theirs.stat().st_mode
