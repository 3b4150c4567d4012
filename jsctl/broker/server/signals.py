"""Operating system signals: which ones are heard, and how to send one to a running server."""

import asyncio
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

from jsctl.broker.errors import ConfigError

HEARD = {
    signal.SIGINT: "interrupt",
    signal.SIGTERM: "terminated",
    signal.SIGUSR1: "user defined signal 1",
    signal.SIGUSR2: "user defined signal 2",
    signal.SIGHUP: "hangup",
}
"""Signals and the words that the log has for them."""

NAMES = {
    "ldm": signal.SIGUSR2,
    "stop": signal.SIGKILL,
    "quit": signal.SIGINT,
    "term": signal.SIGTERM,
    "reopen": signal.SIGUSR1,
    "reload": signal.SIGHUP,
}
"""Commands of `--signal`."""
PID_MAX = (1 << 31) - 1
_PID = re.compile(r"[1-9][0-9]{0,9}").fullmatch
"""0 would be whoever belongs together with this process, the shell's command among them."""


def install(heard: Callable[[signal.Signals], None]) -> None:
    """Call `heard` in the loop for every signal of `HEARD`."""
    loop = asyncio.get_running_loop()
    for number in HEARD:
        loop.add_signal_handler(number, heard, number)


def when_alone(handle: int, alone: Callable[[], None]) -> None:
    """Call `alone` in the loop when nobody has the other end of a pipe any more. Whoever writes to
    it lets go: the pipe is nothing to this process from then on."""
    loop = asyncio.get_running_loop()

    def heard() -> None:
        loop.remove_reader(handle)
        if not os.read(handle, 1):
            alone()
        os.close(handle)

    loop.add_reader(handle, heard)


def uninstall() -> None:
    """Give the signals their usual meaning back."""
    loop = asyncio.get_running_loop()
    for number in HEARD:
        loop.remove_signal_handler(number)


def send(command: str) -> None:
    """Perform `--signal cmd=pid`. Raises ConfigError when there is nobody to send it to."""
    name, _, target = command.partition("=")
    number = NAMES.get(name)
    if number is None:
        raise ConfigError(
            f"unknown signal {name!r}", place="--signal", remedy=f"use one of {', '.join(NAMES)}"
        )
    for pid in find(target):
        try:
            os.kill(pid, number)
        except OSError as error:
            raise ConfigError(
                f"cannot signal process {pid}: {error.strerror}", place="--signal"
            ) from error


def find(target: str) -> list[int]:
    """Process ids of `--signal`: a pid, a pid file, `prefix*`, or nothing for the only server."""
    text = _said_by_file(target) if target else ""
    if _PID(text) and int(text) <= PID_MAX:
        return [int(text)]
    prefix = text.removesuffix("*") if text.endswith("*") else None
    if text and prefix is None:
        raise ConfigError(
            f"{text!r} is neither a pid nor a pid file", place="--signal", remedy="use cmd=pid"
        )
    found = [pid for pid in servers() if prefix is None or str(pid).startswith(prefix)]
    if not found:
        raise ConfigError("no server is running", place="--signal", remedy="use cmd=pid")
    if prefix is None and len(found) > 1:
        pids = ", ".join(str(pid) for pid in found)
        raise ConfigError(
            f"several servers are running: {pids}", place="--signal", remedy="use cmd=pid"
        )
    return found


def _said_by_file(target: str) -> str:
    """What is in a pid file; what is none is meant itself."""
    try:
        if not Path(target).is_file():
            return target
        return Path(target).read_text(errors="replace").strip()
    except OSError as error:
        raise ConfigError(
            f"{target!r} cannot be read: {error.strerror}", place="--signal", remedy="use cmd=pid"
        ) from error


def servers() -> list[int]:
    """Processes of this machine that look like this server, this one excepted."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        names = [word.rpartition(b"/")[2] for word in words[:4]]
        runs = b"broker" in words[:5] and any(name in (b"jsctl", b"__main__.py") for name in names)
        if runs and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return sorted(found)
