"""A process that has the modules of a broker and forks brokers: `python -m jsctl.forkserver FD`.

For `jsctl.testing`, which tells what it is for; here to be loaded without it, and so without what
tests load. The two talk over a pair of sockets, a message a packet: words and the file for the
output one way, process id and exit status the other. A child that has ended waits as a zombie until
it is asked for, so its id is nobody else's until then.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from jsctl.__main__ import serve_broker
from jsctl.broker import lazy
from jsctl.dataclass import write_ahead

PACKET_BYTES = 1 << 16
"""The longest request; what is longer is not asked for."""
LATE = (
    "jsctl.commands.broker",
    "jsctl.broker.beside",
    "jsctl.broker.conf.mapper",
    "jsctl.broker.node",
    "jsctl.broker.accel._columns",
    "jsctl.broker.accel._lane",
    "jsctl.broker.routing.setup",
    "jsctl.broker.store.disk",
    "encodings.idna",
    "stringprep",
)
"""What a start loads within functions, or for what is switched on; `lazy` knows the rest."""


def serve(own: socket.socket) -> list[str]:
    """Answer until nobody asks any more. Returns in the children, with the words of each."""
    # Ctrl-C at a terminal reaches all of a process group; this one ends when nobody asks it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for place in LATE:
        with suppress(ImportError):  # The compiled ones may not be there.
            lazy.load(place)
    more = True
    while True:
        while more and not select.select([own], [], [], 0)[0]:
            more = lazy.ahead(optional=True) or write_ahead(1)
        request, files, _, _ = socket.recv_fds(own, PACKET_BYTES, 1)
        if not request:
            os._exit(0)
        asked: dict[str, Any] = json.loads(request)
        if "ended" in asked:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["ended"], 0)[1])
        else:
            answer = os.fork()
            if not answer:
                own.close()
                os.chdir(asked["directory"])
                _become(asked["environment"], files[0])
                words: list[str] = asked["words"]
                return words
            os.close(files[0])
        own.send(str(answer).encode())


def _become(environment: Mapping[str, str], log: int) -> None:
    """What a new process has: its own variables, signals and output."""
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def main() -> NoReturn:
    """Fork for whoever has the other end; the children leave as brokers."""
    gc.disable()
    words = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv[1:] = ["broker", *words]
    serve_broker(words)


if __name__ == "__main__":
    main()
