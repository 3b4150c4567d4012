"""Ctrl-C while the program, or the loop of a command, is being made or taken apart."""

import sys
from pathlib import Path

import pytest

from tests.support.interrupted import begun

pytestmark = pytest.mark.processes
END_S = 60
INTERRUPTED = 130
EARLY = """
import builtins, os, runpy, signal, sys
load = builtins.__import__
def loading(name, *rest, **more):
    if name == {module!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return load(name, *rest, **more)
builtins.__import__ = loading
"""
UNLOCKED = """
import os, runpy, signal, sys
waiting = {skipped}
def called(frame, event, argument):
    global waiting
    code = frame.f_code
    if event == "call" and code.co_name == "cb" and "importlib" in code.co_filename:
        waiting -= 1
        if not waiting:
            os.kill(os.getpid(), signal.SIGINT)
sys.setprofile(called)
"""
CALLED = """
import os, runpy, signal, sys
def called(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name == {name!r} and {file!r} in code.co_filename:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
sys.setprofile(called)
"""
LOOKING = """
import os, runpy, signal, socket, sys, threading
def told(*_words):
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()
socket.getaddrinfo = told
"""
RUN = """
sys.argv = ["jsctl", "stream", "ls", "-s", URL]
runpy.run_module("jsctl", run_name="__main__")
"""


def ends_without_a_word(code: str, folder: Path, url: str = "nats://127.0.0.1:1") -> None:
    run = RUN.replace("URL", repr(url))
    with begun([sys.executable, "-c", code + run], folder) as process:
        assert process.wait(END_S) == INTERRUPTED
    assert (folder / "log").read_text() == ""


@pytest.mark.parametrize("module", ["typing", "jsctl.cli", "jsctl.settings", "click", "asyncio"])
def test_one_that_comes_while_the_program_is_loaded_ends_it_too(
    module: str, tmp_path: Path
) -> None:
    ends_without_a_word(EARLY.format(module=module), tmp_path)


@pytest.mark.parametrize("skipped", [20, 60, 120])
def test_one_that_comes_as_a_module_is_let_go_of_is_not_forgotten(
    skipped: int, tmp_path: Path
) -> None:
    """What is raised there, in a callback of a weak reference, is shown and ignored."""
    ends_without_a_word(UNLOCKED.format(skipped=skipped), tmp_path)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("new_event_loop", "asyncio/events"),
        ("__init__", "asyncio/base_events"),
        ("_make_self_pipe", "asyncio/selector_events"),
        ("set_event_loop", "asyncio/events"),
        ("run_until_complete", "asyncio/base_events"),
        ("_awaited", "finishing"),
        ("ls", "jsctl/commands/stream/show"),
        ("connect", "jsctl/client/connection"),
        ("_connect_to_server", "jsctl/client/library"),
    ],
)
def test_one_that_comes_while_the_loop_begins_ends_it_too(
    name: str, file: str, tmp_path: Path
) -> None:
    ends_without_a_word(CALLED.format(name=name, file=file), tmp_path)


def test_nobody_waits_for_the_address_of_a_host(tmp_path: Path) -> None:
    """A thread of the loop looks for it, which nothing can break off."""
    ends_without_a_word(LOOKING, tmp_path, "nats://host.example")
