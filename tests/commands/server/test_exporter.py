"""`server check exporter`: a page for Prometheus, compared with that of the real tool."""

import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jsctl.commands.server.check.properties import CHECKS, values_of
from jsctl.commands.toolkit.grammar.spec import Command, options_of
from jsctl.errors import UsageError
from tests.commands.conftest import Result, Server
from tests.support import nats_tool
from tests.support.certificates import make_certificates
from tests.support.ports import free_port
from tests.support.waiting import wait_for

Run = Callable[..., Result]
NUMBER = re.compile(r"(?<=} )\S+$", re.MULTILINE)
OTHERS = re.compile(r"^(?:# \w+ )?(?:go|process|promhttp)_.*\n", re.MULTILINE)
"""What the library of the real tool tells of itself."""

CONFIG = """
context: {context}
checks:
  - {{name: connected, kind: connection, properties: {{connect_time_critical: 30}}}}
  - {{name: all, kind: jetstream, properties: {{stream_critical: 90}}}}
  - name: enough
    kind: stream
    reuse_connection: true
    properties: {{stream_name: PAGE, messages_warn: 10, messages_critical: 5}}
  - {{name: gone, kind: stream, properties: {{stream_name: NOPE}}}}
  - {{name: 'a "name"', kind: consumer, properties: {{stream_name: PAGE, consumer_name: C}}}}
  - {{name: words, kind: kv, properties: {{bucket: NOPE, values_warning: many}}}}
  - {{name: lost, kind: stream, context: nowhere, properties: {{stream_name: PAGE}}}}
"""


def page_of(address: str, context: ssl.SSLContext | None = None) -> str:
    with urllib.request.urlopen(address, timeout=30, context=context) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text: str = answer.read().decode()
        return text


@contextmanager
def exporting(program: Sequence[str], log: Path, *words: str) -> Iterator[str]:
    """Where the page is while it is served."""
    with log.open("wb") as out:
        line = [*program, "server", "check", "exporter", "--port", str(free_port()), *words]
        running = subprocess.Popen(line, stdout=out, stderr=out)
    try:
        wait_for(lambda: "listening on " in log.read_text(), "it says where it listens")
        page = log.read_text().split("listening on ")[1].split()[0].replace("0.0.0.0", "127.0.0.1")
        wait_for(lambda: is_reached(page), "it listens")  # `nats` says so before it does.
        yield page
        running.send_signal(signal.SIGINT)
        running.wait(30)
    finally:
        running.kill()
        running.wait()


def is_reached(page: str) -> bool:
    """Whether anybody is behind its port."""
    where = urlsplit(page)
    try:
        socket.create_connection((str(where.hostname), where.port or 0), 30).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.fixture
def config(server: Server, tmp_path: Path) -> Path:
    context, path = tmp_path / "context.json", tmp_path / "checks.yaml"
    context.write_text(json.dumps({"url": server.url}))
    path.write_text(CONFIG.format(context=context))
    return path


OWN = (sys.executable, "-m", "jsctl")


@pytest.mark.processes
@nats_tool.needed
def test_the_page_is_that_of_the_real_tool(run: Run, config: Path, tmp_path: Path) -> None:
    assert run("stream", "add", "PAGE", "--subjects", "page", "--defaults").code == 0
    assert run("pub", "page", "x", "-J", "--count", "7").code == 0
    assert nats_tool.NATS is not None
    pages: dict[str, str] = {}
    for name, program in (("nats", [nats_tool.NATS]), ("jsctl", OWN)):
        with exporting(program, tmp_path / name, "--config", str(config)) as address:
            page_of(address)
            pages[name] = NUMBER.sub("N", OTHERS.sub("", page_of(address)))
    assert pages["jsctl"] == pages["nats"]
    assert 'stream_status_code{item="enough",status="WARNING"}' in pages["jsctl"]
    assert 'consumer_status_code{item="a .name.",status="CRITICAL"}' in pages["jsctl"]
    said = (tmp_path / "jsctl").read_text()
    assert said.count("CRITICAL gone Crit:could not load info: stream not found (10059)") == 2
    assert "CRITICAL words Crit:invalid properties: values_warning cannot be 'many'" in said


@pytest.mark.processes
def test_a_kept_connection_is_made_anew(run: Run, config: Path, tmp_path: Path) -> None:
    """Nothing else is served, and each page is of its moment."""
    assert run("stream", "add", "PAGE", "--subjects", "page", "--defaults").code == 0
    with exporting(OWN, tmp_path / "log", "--config", str(config)) as address:
        assert 'stream_messages{item="enough"} 0\n' in page_of(address)
        assert run("pub", "page", "x", "-J", "--count", "3").code == 0
        assert 'stream_messages{item="enough"} 3\n' in page_of(address)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            page_of(address.removesuffix("/metrics"))


@pytest.mark.processes
def test_the_page_can_be_encrypted(config: Path, tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    words = ("--https-certificate", str(made / "cert.pem"), "--https-key", str(made / "key.pem"))
    trusting = ssl.create_default_context(cafile=made / "ca.pem")
    with exporting(OWN, tmp_path / "log", "--config", str(config), *words) as address:
        assert address.startswith("https://")
        where = urlsplit(address)
        with socket.create_connection((str(where.hostname), where.port or 0), 30) as plain:
            plain.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            while plain.recv(4096):
                pass
        assert "jetstream_status_code" in page_of(address, trusting)
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("checks: [{name: a, kind: strem}]", "unknown check kind 'strem'; known: connection, "),
        ("checks: 5", "expected a document with a list of checks"),
        ("checks: [a]", "a check has a name and a kind"),
        ("- a", "expected a document with a list of checks"),
        ("{", "expected the node content, but found '<stream end>'"),
        (
            "checks: [{name: a, kind: kv}, {name: a, kind: kv}]",
            "two checks of kind kv have the name 'a'",
        ),
    ],
)
def test_a_configuration_that_is_none(text: str, said: str, cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "checks.yaml"
    path.write_text(text)
    result = cli("server", "check", "exporter", "--config", str(path))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"jsctl: error: {path}: ")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_what_cannot_be_listened_on(cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "checks.yaml"
    path.write_text("checks: []")
    words = ("server", "check", "exporter", "--config", str(path))
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli(*words, "--port", port).err == (
            f"jsctl: error: cannot listen on port {port}: address already in use\n"
        )
    assert "cannot listen on port 99999" in cli(*words, "--port", "99999").err
    assert "given together" in cli(*words, "--https-key", str(path)).err
    pair = ("--https-key", str(path), "--https-certificate", str(path))
    assert "cannot be used" in cli(*words, *pair, "--port", "0").err


def test_properties_are_flags_of_their_checks() -> None:
    from jsctl.commands.server.check import GROUP

    for kind, check in CHECKS.items():
        command = GROUP.find(kind)
        assert isinstance(command, Command)
        named = {one.name for one in options_of(command)}
        parts = (check.texts, check.counts, check.times, check.switches, check.maps)
        assert {flag for part in parts for flag in part.values()} == named, kind
    assert values_of("message", {"age_warning": 1.5, "age_critical": "2m"}) == {
        "age-warn": "1500000000ns",
        "age-critical": "120000000000ns",
    }
    assert values_of("request", {"headers": {"A": "b"}})["match-headers"] == ("A:b",)
    assert values_of("kv", {"bucket": "B"})["values-warn"] == "-1"
    for kind, properties in (
        ("kv", {"bukcet": "B"}),
        ("kv", {"bucket": 5}),
        ("kv", {"values_warning": 1.5}),
        ("message", {"age_warning": "soon"}),
        ("message", {"body_as_timestamp": "yes"}),
        ("message", {"age_warning": True}),
    ):
        with pytest.raises(UsageError):
            values_of(kind, properties)
