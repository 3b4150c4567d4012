"""The real command line in a process of its own, with contexts of its own."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.support.forked import jsctl
from tests.support.waiting import wait_for

RUN_S = 60
PATIENCE = "20s"
"""For an answer: on a busy machine a disk may stand still for longer than the usual timeout."""
LEADERLESS, ELECTED_S = "(10008)", 20.0
"""In an error: there was no leader to ask just now, and until when there is one at the latest."""
FOREIGN = ("NATS_", "JSCTL_", "LLMFORMAT", "FORCE_COLOR")


@dataclass(frozen=True, slots=True)
class Done:
    """What a command line did."""

    code: int
    out: str
    err: str


class Failing(Protocol):
    """What a command did, as far as it says why it failed."""

    @property
    def err(self) -> str:
        """The standard error stream."""


D = TypeVar("D", bound=Failing)


def led(run: Callable[[], D]) -> D:
    """What a command does where there is a leader: until then it is run again, as people do.

    On a busy machine a leader may be silent for so long that the others elect another one.
    AssertionError where none is elected.
    """
    done: list[D] = []

    def answered() -> bool:
        done[:] = [run()]
        return LEADERLESS not in done[0].err

    wait_for(answered, "there is a leader to ask", ELECTED_S)
    return done[0]


class CommandLine:
    """Runs `jsctl` words; `app` is a plain user's context, `sys` the system user's."""

    def __init__(self, home: Path, urls: list[str]) -> None:
        """Stores both contexts below `home`."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        own = {"XDG_CONFIG_HOME": str(home), "TZ": "UTC", "NATS_TIMEOUT": PATIENCE}
        self._environment = {**kept, **own}
        servers = ("--server", ",".join(urls))
        self.run("context", "add", "app", *servers, "--select")
        who = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
        self.run("context", "add", "sys", *servers, *who)

    def ask(self, *words: str) -> Done:
        """Run and give everything, failed or not."""
        done = jsctl(words, self._environment, timeout=RUN_S)
        return Done(done.returncode, done.stdout, done.stderr)

    def run(self, *words: str) -> str:
        """What it prints; AssertionError when it fails, and not for want of a leader."""
        done = led(lambda: self.ask(*words))
        assert done.code == 0, f"jsctl {' '.join(words)}\n{done.out}\n{done.err}"
        return done.out

    def system(self, *words: str) -> str:
        """The same as the system user."""
        return self.run("--context", "sys", *words)

    def json(self, *words: str) -> Any:
        """The decoded document that it prints."""
        return json.loads(self.run(*words, "-j"))


def rows(table: str) -> list[list[str]]:
    """The cells of a printed table, line by line, its title left out."""
    lines = [line for line in table.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines][1:]


def leader_of(info: Any) -> str:
    """Who leads a stream or consumer, from its info; empty if nobody."""
    leader: str = info["cluster"].get("leader", "")
    return leader


def followers_of(info: Any) -> dict[str, bool]:
    """The other replicas and whether they are current and online."""
    return {
        one["name"]: one["current"] and not one.get("offline", False)
        for one in info["cluster"].get("replicas", [])
    }


def is_whole(info: Any, replicas: int) -> bool:
    """Whether there is a leader and all others are current."""
    followers = followers_of(info)
    return bool(leader_of(info)) and len(followers) == replicas - 1 and all(followers.values())
