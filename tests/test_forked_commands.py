"""A forked command line does what a started one does."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jsctl.testing import Broker
from tests.support.forked import jsctl
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes
Told = tuple[int, str, str]
LINES = (
    "kv put B key",
    "kv get B key --raw",
    "stream add --config here.json",
    "context add mine --server nowhere:1",
    "context ls --names",
    "context info gone",
    "nope",
    "--version",
    "__complete -- kv g",
    "stream info gone",
)
"""With an input, a file of the working directory, and files of a home."""


def started(words: list[str], environment: dict[str, str], given: str) -> Told:
    done = subprocess.run(
        [sys.executable, "-m", "jsctl", *words],
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def forked(words: list[str], environment: dict[str, str], given: str) -> Told:
    done = jsctl(words, environment, given=given)
    return done.returncode, done.stdout, done.stderr


def test_what_it_does_and_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[Told]] = []
    with Broker("-js") as broker:
        assert jsctl(["-s", broker.url, "kv", "add", "B"]).returncode == 0
        for run in (started, forked):
            home = tmp_path / run.__name__
            home.mkdir()
            (home / "here.json").write_text('{"name": "CFG"}')
            monkeypatch.chdir(home)
            own = {"NATS_URL": broker.url, "XDG_CONFIG_HOME": str(home), "NO_COLOR": "1"}
            said = [run(line.split(), {**os.environ, **own}, "given\n") for line in LINES]
            found.append([(code, out.replace(str(home), "HOME"), err) for code, out, err in said])
            assert (home / "nats/context/mine.json").exists()
    assert found[1] == found[0]
    says = dict(zip(LINES, found[1], strict=True))
    assert says["kv get B key --raw"] == (0, "given\n", "")
    assert "replicas should be" in says["stream add --config here.json"][2], "it was read"
    assert says["nope"][0] == says["stream info gone"][0] == 1


def test_nothing_is_drawn_twice() -> None:
    """What a module draws when it is loaded all forks would have."""
    seeds = [jsctl(["auth", "nkey", "gen", "user"]).stdout for _ in range(2)]
    assert all(seed.startswith("SU") for seed in seeds) and seeds[0] != seeds[1]


def test_who_goes_on_for_too_long_is_killed() -> None:
    with Broker() as broker:
        begun = time.monotonic()
        with pytest.raises(subprocess.TimeoutExpired):
            jsctl(["-s", broker.url, "sub", "x"], timeout=1.0)
        assert time.monotonic() - begun < 30

        def left() -> bool:
            found = broker.monitor("/connz")
            assert isinstance(found, dict)
            return found["num_connections"] == 0

        wait_for(left, "its connection ends")
        assert jsctl(["--version"]).returncode == 0, "the others go on"
