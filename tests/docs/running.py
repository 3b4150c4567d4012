"""Runs the examples of a page in their order, as somebody would who follows it.

Commands run in this process where they need no shell, which is most of them; all they write comes
together, as on a terminal.
"""

import gc
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from jsctl.cli import main
from jsctl.completion.near import near_hints
from jsctl.testing import HOST, SYSTEM_PASSWORD, SYSTEM_USER, Broker, Cluster
from tests.docs.comparing import difference, says
from tests.docs.reading import Example, Page
from tests.support.waiting import wait_for

CONFIG = f"""
accounts {{
  APP {{ jetstream: enabled, users: [ {{ user: app, password: app }} ] }}
  $SYS {{ users: [ {{ user: {SYSTEM_USER}, password: {SYSTEM_PASSWORD} }} ] }}
}}
no_auth_user: app
"""
CLIENTS, MONITOR = 4222, 8222
"""Ports of servers in the documents, which call them n1, n2, ...; here they have others."""
STATUS = "echo $?"
PATIENCE_S, RUN_S = 20, 30
ANSWER, LATE_ANSWER = "500ms", "5s"
"""What is waited for servers of which nobody knows how many will answer: all of it each time."""
GATHERS = re.compile(r"--context system\b|^jsctl (?:server|service|--context system|top) ")
READS = re.compile(
    r"\b(?:ls|list|info|report|state|subjects|view|get|find|gaps|history|stats|check|ping|status)\b"
)
"""What can be asked again: a server may need a moment until all of it knows of a change."""
BUSY = re.compile(r"temporarily unavailable \(10008\)|^  no answer from ", re.MULTILINE)
"""What a cluster without a leader answers, or nobody does, before anything is done."""
SHELL = re.compile(r"[|&;<>()$`*?~]")
QUOTED = re.compile(r"'[^']*'|\"[^\"$`]*\"")


@dataclass(frozen=True, slots=True)
class Told:
    """What a command did; its two outputs together."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Beside:
    """A command in a second terminal."""

    example: Example
    process: "subprocess.Popen[bytes]"
    output: Path

    def told(self) -> str:
        """So far."""
        return self.output.read_text()


class Reader:
    """Somebody with a folder, a home and servers of their own, who follows a page."""

    def __init__(
        self, page: Page, folder: Path, brokers: list[Broker], *, patient: bool = True
    ) -> None:
        """`brokers` are n1, n2, ... of the page; `patient` asks again until it is told so."""
        self._patient = patient
        self._page = page
        self._folder = folder
        self._brokers = brokers
        self._beside: list[Beside] = []
        self._code = 0
        self.told: dict[int, str] = {}
        """What examples told, by their line."""
        self.wrong: list[str] = []
        """What is not as the page says."""
        home = folder.parent / "home"
        home.mkdir()
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        places = {"CONFIG": ".config", "DATA": ".local/share", "CACHE": ".cache"}
        self.environment = {"HOME": str(home), "PATH": tools, "TZ": "UTC", "TERM": "xterm"}
        self.environment |= {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        self.environment |= {f"XDG_{name}_HOME": str(home / one) for name, one in places.items()}
        if page.has_contexts:
            self._add_contexts()

    def follow(self) -> None:
        """Every example; what goes on beside is ended in the end."""
        try:
            for example in self._page.examples:
                if not example.why_not:
                    self._follow(example)
            self._expect_success()
            for one in self._beside:
                self._end(one)
        finally:
            for one in self._beside:
                one.process.kill()
                one.process.wait()

    def _follow(self, example: Example) -> None:
        if example.command == STATUS:
            told = Told(0, f"{self._code}\n")
        else:
            self._expect_success()
            self._last = example
            if example.beside:
                self._begin(example)
                return
            told = self._run_until_right(example)
        self._code = told.code
        self._compare(example, told.text)

    def _compare(self, example: Example, told: str) -> None:
        self.told[example.line] = told
        if not says(example.shown, told):
            self._blame(example, difference(example.shown, told))

    def _expect_success(self) -> None:
        """A status that is not 0 is one that the page asks for."""
        if self._code:
            self._blame(self._last, f"exit status {self._code}\n{self.told[self._last.line]}")
        self._code = 0

    def _blame(self, example: Example, why: str) -> None:
        name = self._page.path.name
        self.wrong.append(f"{name}:{example.line}: {example.command}\n{why}")

    def _run_until_right(self, example: Example) -> Told:
        gathers = GATHERS.search(example.command) is not None
        told = self._run(example.command, ANSWER if gathers else f"{PATIENCE_S}s")
        if told.code and BUSY.search(told.text):
            told = wait_for(lambda: self._unless_busy(example), example.command) or told
        if READS.search(example.command) is None or not self._patient:
            return told
        last = [told]

        def right() -> bool:
            if says(example.shown, last[0].text) and (example.shown or not last[0].code):
                return True
            last[0] = self._run(example.command, LATE_ANSWER if gathers else f"{PATIENCE_S}s")
            return False

        try:
            wait_for(right, example.command, PATIENCE_S / 4)
        except AssertionError:
            pass  # It is told what differs.
        return last[0]

    def _unless_busy(self, example: Example) -> Told | None:
        told = self._run(example.command, f"{PATIENCE_S}s")
        return None if told.code and BUSY.search(told.text) else told

    def _run(self, command: str, wait: str) -> Told:
        command = self._with_ports(command)
        own = dict(self.environment)
        if self._page.has_contexts:  # Others would be told of what is in their environment.
            own["NATS_TIMEOUT"] = wait
        bare = QUOTED.sub("", re.sub(r"\s#.*", "", command))
        with tempfile.TemporaryFile("w+b") as output:
            if SHELL.search(bare) or not bare.startswith("jsctl "):
                code = subprocess.run(
                    ["bash", "-c", command],
                    cwd=self._folder,
                    env={**os.environ, **own},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=RUN_S,
                    check=False,
                ).returncode
            else:
                with (
                    at_home(self._folder, own),
                    together(output.fileno()),
                    interrupted_after(RUN_S),
                ):
                    words = shlex.split(command, comments=True)[1:]
                    code = main(words, lambda given: near_hints(given, os.environ))
            if code:
                forget_what_is_open()
            output.seek(0)
            return Told(code, self._with_names(output.read().decode()))

    def _begin(self, example: Example) -> None:
        """In the second terminal, until a server knows what it wants to hear."""
        before, number = self._listening(), len(self._beside)
        output = self._folder.parent / f"beside{number}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self._with_ports(example.command)}"],
                cwd=self._folder,
                env={**os.environ, **self.environment, "NATS_TIMEOUT": f"{PATIENCE_S}s"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        made = Beside(example, process, output)
        self._beside.append(made)
        wait_for(
            lambda: self._listening() > before or process.poll() is not None,
            f"{example.command} listens: {made.told()}",
        )

    def _end(self, one: Beside) -> None:
        """When it has told all, or should have."""

        def done() -> bool:
            shown = one.example.shown
            return one.process.poll() is not None or (
                says(shown, self._with_names(one.told())) if shown else True
            )

        try:
            wait_for(done, one.example.command, PATIENCE_S)
        except AssertionError:
            pass  # It is told what differs.
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGINT)
            one.process.wait(PATIENCE_S)
        self._compare(one.example, self._with_names(one.told()))

    def _listening(self) -> int:
        """Subscriptions of clients on all servers."""
        return sum(_subscriptions(broker.monitor("/connz")) for broker in self._brokers)

    def _ports(self) -> Iterator[tuple[str, str]]:
        """How documents call a port, and which one it is."""
        for number, broker in enumerate(self._brokers, 1):
            yield f"n{number}:{CLIENTS}", f"{HOST}:{broker.port}"
            yield f"n{number}:{MONITOR}", broker.monitor_url.removeprefix("http://")

    def _with_ports(self, text: str) -> str:
        for name, port in self._ports():
            text = text.replace(name, port)
        return text

    def _with_names(self, text: str) -> str:
        """As documents call them; columns keep their width."""
        for name, port in self._ports():
            width = len(port)
            cell = re.compile(rf"{re.escape(port)}(?= *│)")
            text = cell.sub(name.ljust(width), text).replace(port, name)
        return text.replace(str(self._folder), ".").replace(self.environment["HOME"], "~")

    def _add_contexts(self) -> None:
        servers = f"--server {','.join(broker.url for broker in self._brokers)}"
        who = f"--user {SYSTEM_USER} --password {SYSTEM_PASSWORD}"
        for words in (f"app {servers} --select", f"system {servers} {who}"):
            told = self._run(f"jsctl context add {words}", ANSWER)
            assert told.code == 0, told


def _subscriptions(page: Any) -> int:
    return sum(one["subscriptions"] for one in page["connections"])


@contextmanager
def served(page: Page) -> Iterator[list[Broker]]:
    """The servers of a page: n1 alone, or a cluster."""
    if page.servers == 1:
        with Broker(name="n1", config=CONFIG, jetstream=True) as broker:
            yield [broker]
        return
    cluster = Cluster(page.servers, config=CONFIG)
    try:
        yield list(cluster.start())
    finally:
        cluster.close()


@contextmanager
def at_home(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """This process is in a folder, with its environment, and nobody answers its questions."""
    before, kept, stdin = Path.cwd(), dict(os.environ), sys.stdin
    with open(os.devnull) as nobody:
        try:
            os.chdir(folder)
            os.environ.update(environment)
            sys.stdin = nobody
            yield
        finally:
            sys.stdin = stdin
            os.environ.clear()
            os.environ.update(kept)
            os.chdir(before)


def forget_what_is_open() -> None:
    """A command that failed leaves to the end of its process what it could not close any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@contextmanager
def interrupted_after(seconds: int) -> Iterator[None]:
    """What has no end gets a Ctrl-C."""
    timer = Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def together(target: int) -> Iterator[None]:
    """Both outputs of this process lead to one file, each line as soon as it is written."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = {number: os.dup(number) for number in (1, 2)}
    with ExitStack() as opened:
        try:
            for number in saved:
                os.dup2(target, number)
            out, err = (
                opened.enter_context(open(os.dup(target), "w", 1, "utf-8")) for _ in range(2)
            )
            with redirect_stdout(out), redirect_stderr(err):
                yield
        finally:
            for number, kept in saved.items():
                os.dup2(kept, number)
                os.close(kept)
