"""`jsctl account` and `nats account` on the same servers."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.auth.certificates import read_certificate
from jsctl.errors import JsctlError
from tests.commands.conftest import Result
from tests.support.certificates import make_certificates
from tests.support.nats_process import real_server
from tests.support.real_cli import Answer, differences, nats, needs_nats

Run = Callable[..., Result]
pytestmark = pytest.mark.processes

TLS = (
    "account tls",
    "account tls --no-pem",
    "account tls --no-pem --expire-warn 1h",
    "account tls --no-pem --expire-warn 0 --ocsp",
    "account tls nope",
)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server with TLS, and the folder of its certificates."""
    folder = make_certificates(tmp_path_factory.mktemp("tls"), "/C=DE/O=Acme/OU=x/CN=localhost")
    files = ("--tlscert", folder / "cert.pem", "--tlskey", folder / "key.pem")
    with real_server(folder, "--tls", *files) as url:
        yield url.replace("nats://", "tls://").replace("127.0.0.1", "localhost"), folder


@needs_nats
def test_certificates_are_told_the_same(cli: Run, encrypted: tuple[str, Path]) -> None:
    url, folder = encrypted
    flags = ("--server", url, "--tlsca", str(folder / "ca.pem"))
    pairs: list[tuple[str, Answer, Answer]] = []
    for line in TLS:
        ours = cli(*line.split(), *flags)
        pairs.append((line, nats(*line.split(), *flags), Answer(ours.code, ours.out, ours.err)))
    told = differences(pairs)
    assert not told, told


def test_what_is_no_certificate_is_told(encrypted: tuple[str, Path]) -> None:
    import ssl

    der = ssl.PEM_cert_to_DER_cert((encrypted[1] / "cert.pem").read_text())
    assert read_certificate(der).subject == "CN=localhost,OU=x,O=Acme,C=DE"
    for broken in (b"", der[:50], b"\x30\x82\xff\xff" + der, b"\x30\x84\xff\xff\xff\xff"):
        with pytest.raises(JsctlError, match="cannot be read"):
            read_certificate(broken)


def test_without_tls_there_is_nothing_to_show(run: Run) -> None:
    assert run("account", "tls").err == "jsctl: error: nats: connection is not tls\n"


@needs_nats
def test_statistics_have_the_same_rows(run: Run, server: object) -> None:
    url = getattr(server, "url", "")

    def rows(text: str) -> list[str]:
        """Without the figures, which change with each connection, and without the footer."""
        body = text.split("├")[2].splitlines()[1:]
        return sorted(re.sub(r"\d+(\.\d+)? ?(B|KiB|MiB)?", "N", line) for line in body)

    ours, theirs = run("account", "report", "statistics").out, None
    theirs = nats("-s", url, "account", "report", "stats").out
    assert ours.splitlines()[1].strip("│ ") == theirs.splitlines()[1].strip("│ ")
    assert ours.splitlines()[3].split() == theirs.splitlines()[3].split()
    shown = [re.sub(r" +", " ", line) for line in rows(ours)]
    assert shown == [re.sub(r" +", " ", line) for line in rows(theirs)]
