"""`--watch`: rounds of a report in a pipe and on a terminal, until Ctrl-C."""

from collections.abc import Callable

import pytest

from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server
from tests.support.interrupted import in_a_pipe, on_a_terminal

Run = Callable[..., Result]
pytestmark = pytest.mark.processes


def words(server: Server) -> tuple[str, ...]:
    flags = ("-s", server.url, "--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    return (*flags, "server", "report", "mem", "--watch", "1")


def test_rounds_in_a_pipe(server: Server) -> None:
    found = in_a_pipe(words(server), b"Memory Usage", 2)
    assert found.startswith(b"Memory Usage\n\n")
    assert b"\n\nMemory Usage\n" in found
    assert b"\x1b" not in found


def test_rounds_on_a_terminal(server: Server) -> None:
    shown, left = on_a_terminal(words(server), b"every 1s", 2)
    assert shown.startswith(b"\x1b[?1049h\x1b[?25l\x1b[?2026h\x1b[H")
    assert left.startswith(b"Memory Usage\r\n")
    assert b"n3: " in left


def test_the_first_round_may_fail(cli: Run) -> None:
    result = cli("-s", "127.0.0.1:1", "server", "report", "mem", "--watch", "1")
    assert (result.code, result.out) == (1, "")
    assert "no servers available" in result.err


def test_rounds_in_a_pipe_are_documents_of_their_format(server: Server) -> None:
    """Those of YAML are no single one, and there are no empty lines of JSON."""
    import yaml

    gateways = (*words(server)[:-3], "gateways", "--watch", "1")
    assert b"[]\n---\n[]\n" in in_a_pipe((*gateways, "-o", "yaml"), b"[]\n", 2)
    found = in_a_pipe((*words(server), "-o", "yaml"), b"---", 2)
    documents = list(yaml.safe_load_all(found))
    assert len(documents) > 2
    assert all(set(one) == {"n1", "n2", "n3"} for one in documents)
    assert all(line for line in in_a_pipe((*words(server), "-o", "jsonl"), b"n1", 2).splitlines())
