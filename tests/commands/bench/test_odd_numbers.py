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
