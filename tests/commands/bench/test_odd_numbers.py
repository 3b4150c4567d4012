"""Numbers that make no benchmark, or another one than they seem to."""

import pytest

from jsctl.cli import main
from jsctl.testing import Broker

COUNT = ("--msgs", "3", "--no-progress")
STREAM = ("--stream", "S", *COUNT)


@pytest.mark.processes
def test_numbers_below_zero_end_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    with Broker(jetstream=True) as server:

        def said(*words: str) -> tuple[int, str]:
            code = main(("-s", server.url, *words))
            return code, capfd.readouterr().err

        stream = ("--subjects", "s.>", "--defaults", "--allow-fast")
        assert said("stream", "add", "S", *stream)[0] == 0
        assert said("pub", "-J", "-q", "s.1", "x", "--count", "3")[0] == 0
        for kind in ("ordered", "consume", "fetch"):
            code, err = said("bench", "js", kind, *STREAM, "--batch", "-1")
            assert (code, err) == (1, "jsctl: error: --batch must be >= 1\n")
        assert said("bench", "kv", "put", *COUNT, "--randomize", "-1")[0] == 0
        assert said("bench", "kv", "get", *COUNT, "--randomize", "-1")[0] == 0
        several = ("--multisubject", "--multisubjectmax", "-1", "--multisubjectrandomize")
        code, err = said("bench", "pub", "b", *COUNT, *several)
        assert (code, err) == (1, "jsctl: error: --multisubjectmax must be >= 0\n")
        code, err = said("bench", "js", "pub", "fast", "s.2", *STREAM, "--batch", "70000")
        assert code == 0
        assert "--batch 70000 exceeds the fast publisher flow window maximum of 65535" in err


@pytest.mark.processes
def test_what_no_server_takes_is_told_by_the_client(capfd: pytest.CaptureFixture[str]) -> None:
    with Broker(jetstream=True) as server:

        def said(*words: str) -> tuple[int, str]:
            code = main(("-s", server.url, "bench", *words))
            return code, capfd.readouterr().err

        for words in (("js", "get", "batch"), ("js", "pub", "sync", "b", "--create")):
            code, err = said(*words, *COUNT, "--stream", "a b")
            assert (code, err.endswith('"a b" is not a valid stream name\n')) == (1, True), err
            assert "Starting JetStream" in err
        for clients in ("1", "2"):
            code, err = said("pub", "b", *COUNT, "--size", "2M", "--clients", clients)
            assert code == 1
            assert err.endswith("error: publishing: publishing: nats: maximum payload exceeded\n")
        code, err = said("kv", "put", *COUNT, "--history", "256")
        assert (code, "less than or equal to 255" in err) == (1, True)
        rate = ("--throughput", "1000000000000", "--duration", "400000h")
        code, err = said("pub", "b", *COUNT, *rate)
        assert (code, "exceeds the maximum" in err, "Starting" in err) == (1, True, False)


@pytest.mark.parametrize("clients", ["1", "3"])
def test_clients_begin_when_they_are_connected(
    clients: str, capfd: pytest.CaptureFixture[str]
) -> None:
    nowhere = ("-s", "nats://127.0.0.1:1")
    code = main((*nowhere, "bench", "pub", "b", *COUNT, "--clients", clients))
    err = capfd.readouterr().err
    assert (code, "] Starting Core" in err, "from client" in err) == (1, False, False)
    assert "failed to connect: nats: no servers available for connection\n" in err
