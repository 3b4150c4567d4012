"""Health checks where they go beyond what the real tool does, and what they print for programs."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from time import time_ns

import nkeys  # type: ignore[import-untyped] # has no types
import pytest

from jsctl.api.times import SECOND_NS
from jsctl.render.reports.server.check import CheckResult, human, nagios, prometheus, short_float
from tests.commands.conftest import Result, Server

Run = Callable[..., Result]
SEED = b"SUAGMJH5XLGZKQQWAWKRZJIGMOU4HPFUYLXJMXOO5NLFEO2OOQJ5LPRDPM"
DAY = 86_400


def credential(expires: int, *, forged: bool = False) -> str:
    """A credentials file that its own user has signed."""
    pair = nkeys.from_seed(bytearray(SEED))
    claims = {"iss": pair.public_key.decode(), "sub": pair.public_key.decode()}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, {**claims, "exp": expires})
    ]
    signed = b".".join(parts)
    made = pair.sign(signed if not forged else b"else")
    token = (signed + b"." + base64.urlsafe_b64encode(made).rstrip(b"=")).decode()
    return f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n"


@pytest.mark.parametrize(
    ("days", "flags", "code", "said"),
    [
        (5, (), 0, "OK:expires in 20"),
        (5, ("--validity-warn", "7d"), 1, "Warn:expires sooner than 7d0h0m0s"),
        (5, ("--validity-warn", "7d", "--validity-critical", "6d"), 2, "Crit:expires sooner"),
        (5, ("--validity-warn", "3d", "--validity-critical", "1d"), 0, "OK:expires in"),
        (-1, ("--validity-critical", "1s"), 2, "Crit:expires sooner than 1.00s"),
        (None, (), 2, "Crit:never expires"),
        (None, ("--no-require-expiry", "--validity-critical", "1d"), 0, "OK:never expires"),
    ],
)
def test_credentials_are_measured_in_seconds(
    days: int | None, flags: tuple[str, ...], code: int, said: str, cli: Run, tmp_path: Path
) -> None:
    now = time_ns() // SECOND_NS
    path = tmp_path / "user.creds"
    path.write_text(credential(now + days * DAY if days is not None else 0))
    result = cli("server", "check", "credential", "--credential", str(path), *flags)
    assert (result.code, result.err) == (code, "")
    assert said in result.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (credential(0, forged=True), "claim failed V2 signature verification"),
        ("no token", "expected 3 chunks"),
        ("a.b.c", "its claims cannot be read"),
        ("a.W10.c", "its claims cannot be read"),
    ],
)
def test_credentials_that_no_server_takes(text: str, said: str, cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "user.creds"
    path.write_text(text)
    result = cli("server", "check", "credential", "--credential", str(path))
    assert result.code == 2
    assert result.out == f"CRITICAL Credential Crit:invalid credential: {said}\n"


def test_metadata_sets_thresholds_and_flags_win(run: Run) -> None:
    key = "io.nats.monitor."
    more = ("--metadata", f"{key}msgs-critical=5", "--metadata", f"{key}peer-expect=3")
    run("stream", "add", "S", "--subjects", "s", "--replicas", "3", *more, "--defaults")
    check = ("server", "check", "stream", "--stream", "S")
    first = run(*check)
    assert (first.code, "Crit:0 messages OK:3 peers" in first.out) == (2, True)
    assert run(*check, "--msgs-critical", "0").code == 0
    assert run(*check, "--msgs-critical", "0", "--peer-expect", "5").code == 2
    run("consumer", "add", "S", "C", "--pull", "--metadata", f"{key}pinned=true", "--defaults")
    found = run("server", "check", "consumer", "--stream", "S", "--consumer", "C")
    assert (found.code, "Crit:Not pinned client priority mode" in found.out) == (2, True)
    run("stream", "edit", "S", "--metadata", f"{key}msgs-warn=many", "-f")
    assert "Crit:could not configure based on metadata" in run(*check).out


def test_any_message_of_a_stream(run: Run, publish: Callable[..., None]) -> None:
    run("stream", "add", "S", "--subjects", "s.*", "--defaults")
    publish("s.1", b"42")
    check = ("server", "check", "message", "--stream", "S")
    assert run(*check, "--content", "^42$").code == 0
    assert run(*check, "--subject", "s.*", "--content", "x").code == 2
    old = run(*check, "--body-timestamp", "--age-critical", "1d")
    assert (old.code, "age=" in old.out) == (2, True)
    usage = run(*check, "--content", "[")
    assert (usage.code, usage.out) == (1, "")
    assert "--content" in usage.err


def test_headers_of_answers_are_looked_at(run: Run, server: Server) -> None:
    del server
    check = ("server", "check", "request", "--subject", "$JS.API.INFO")
    assert run(*check, "--headers", "A:1").code == 0
    wrong = run(*check, "--match-headers", "A:1")
    assert (wrong.code, 'Crit:invalid header "A" = ""' in wrong.out) == (2, True)


def test_formats_of_the_command_line_are_taken(run: Run) -> None:
    check = ("server", "check", "stream", "--stream", "NOPE")
    document = json.loads(run(*check, "-o", "json").out)
    assert (document["status"], document["check_suite"]) == ("CRITICAL", "stream")
    assert run(*check, "-o", "yaml").out.startswith("status: CRITICAL\n")
    assert run(*check, "-o", "json", "--format", "nagios").out.startswith("CRITICAL NOPE ")


def test_a_file_is_whole_or_not_there(run: Run, tmp_path: Path) -> None:
    check = ("server", "check", "stream", "--stream", "NOPE", "--outfile")
    result = run(*check, str(tmp_path / "no" / "where"))
    assert (result.code, result.out) == (1, "")
    assert "no such file or directory" in result.err
    assert run(*check, str(tmp_path)).code == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (1, "1"), (-2.5, "-2.5"), (999_999, "999999"), (1e6, "1e+06")),
        *((1_234_567, "1.234567e+06"), (0.0001, "0.0001"), (0.00001234, "1.234e-05")),
        *((1e21, "1e+21"), (22_855_680, "2.285568e+07"), (0.03, "0.03")),
    ],
)
def test_numbers_are_written_as_go_does(value: float, text: str) -> None:
    assert short_float(value) == text


def test_results_are_rendered_for_everybody() -> None:
    result = CheckResult("suite", 'na"me')
    result.ok("fine")
    assert nagios(result) == 'OK na"me OK:fine'
    result.warn("look")
    result.measure("a b", 1234.5678, warning=1, help="A thing")
    result.measure("t", 0.5, critical=2, unit="s")
    assert nagios(result) == "WARNING na\"me Warn:look OK:fine | 'a b'=1235;1 t=0.5000s;;2.0000"
    assert 'n_suite_status_code{item="na.me",status="WARNING"} 1\n' in prometheus([result], "n")
    assert "│ a b    │ 1,234.567 │      │ 0.000 " in human(result)
