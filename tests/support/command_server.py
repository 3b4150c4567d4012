"""A process that has the modules of `jsctl` and forks command lines; see `forked`.

A request is a packet: words, variables, working directory, and the files for its input and two
outputs, or one terminal, of which it has a session of its own. It is answered with a process id;
the exit status is told to who asks for it once the process has ended, which it waits for as a
zombie, so that its id is nobody else's until then.
"""

import gc
import json
import os
import signal
import socket
import sys
import time
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import jsctl.client
import jsctl.commands
import jsctl.render
from jsctl.__main__ import main
from jsctl.entry import leave

PACKET_BYTES = 1 << 18
"""The longest request."""
ELSEWHERE = tuple(f"jsctl.commands.{one}" for one in ("broker", "dashboard", "pipeline"))
"""What loads other parts of the package, which are large."""


def load_all() -> None:
    """What commands load when they are run."""
    import_module("jsctl.cli")
    for package in (jsctl.client, jsctl.commands, jsctl.render):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.startswith(ELSEWHERE):
                import_module(found.name)


def serve(own: socket.socket) -> list[str]:
    """Answer until nobody asks any more. Returns in the children, with the words of each."""
    while True:
        try:
            request, files, _, _ = socket.recv_fds(own, PACKET_BYTES, 3)
        except ConnectionError:
            request = b""
        if not request:
            os._exit(0)
        asked: dict[str, Any] = json.loads(request)
        if "ended" in asked:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["ended"], 0)[1])
        elif not (answer := os.fork()):
            own.close()
            become(asked, files)
            words: list[str] = asked["words"]
            return words
        for one in files:
            os.close(one)
        own.send(str(answer).encode())


def become(asked: dict[str, Any], files: list[int]) -> None:
    """What a new process has: its own place, variables, signals, input and outputs."""
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    if len(files) == 1:
        os.login_tty(files[0])
    else:
        for number, one in enumerate(files):
            os.dup2(one, number)
            os.close(one)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        was = getattr(sys, name)  # Made for a file that is not there any more
        mode = "w" if number else "r"
        encoding, errors = was.encoding, was.errors
        made = os.fdopen(number, mode, encoding=encoding, errors=errors, closefd=False)
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    load_all()
    gc.collect()
    gc.freeze()
    sys.argv[1:] = serve(socket.socket(fileno=int(sys.argv[1])))
    leave(main())  # Taking apart all that was loaded would take as long as the command.
