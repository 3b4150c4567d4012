"""A process that has the modules of a broker and forks brokers: `python -m jsctl.forkserver FD`.

For `jsctl.testing`, which tells what it is for; here to be loaded without it, and so without what
tests load. The two talk over a pair of sockets, a message a packet: words and the file for the
output one way, process id and exit status the other. A child that has ended waits as a zombie until
it is asked for, so its id is nobody else's until then. Who goes without a word was killed: with it
go the children, and the other programs that it showed by their handles. Children that it does not
know of, as it was interrupted while it asked for them, go when it says so, or goodbye. If this one
is killed the children end, too: each has a pipe whose other end is here.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any, NoReturn

from jsctl import OWNER
from jsctl.api.codec import keys_of
from jsctl.broker import lazy
from jsctl.dataclass import write_ahead
from jsctl.entry import serve_broker

PACKET_BYTES = 1 << 16
"""The longest request; what is longer is not asked for."""
SENT_TO_ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What a terminal or a supervisor sends to a whole process group."""
LATE = (
    "jsctl.commands.broker",
    "jsctl.broker.beside",
    "jsctl.broker.conf.mapper",
    "jsctl.broker.node",
    "jsctl.broker.accel._columns",
    "jsctl.broker.accel._lane",
    "jsctl.broker.accel._sockets",
    "jsctl.broker.accel._syncs",
    "jsctl.broker.routing.setup",
    "jsctl.broker.server.http.http_connection",
    "jsctl.broker.store.disk",
    "jsctl.broker.store.tree.strangers",
    "ctypes",
    "encodings.idna",
    "stringprep",
)
"""What a start loads within functions, or for what is switched on; `lazy` knows the rest."""


def serve(own: socket.socket) -> list[str]:
    """Answer until nobody asks any more. Returns in the children, with the words of each."""
    # This one ends when nobody asks it. Blocked, not ignored: what is sent to a child that is not
    # yet a broker waits for it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SENT_TO_ALL)
    _load_late()
    children: dict[int, int] = {}
    """Each with the end of its pipe that is here."""
    statuses: dict[int, int] = {}
    """Of children that have ended, for who asks once more as he was interrupted."""
    others: list[int] = []
    ahead = _ahead()
    while True:
        while not select.select([own], [], [], 0)[0] and next(ahead, False):
            pass
        request, files = _next(own)
        if not request:
            _kill(children, others)
            os._exit(0)
        asked: dict[str, Any] = json.loads(request)
        answer = 0
        if "known" in asked:
            _kill(children.keys() - asked["known"], [])
        if "goodbye" in asked:
            _let_go(children.values())
            os._exit(0)
        elif "ended" in asked:
            answer = _status_of(asked["ended"], children, statuses)
        elif "other" in asked:
            others = [*_running(others), files[0]]
        elif "words" in asked:
            theirs, ours = os.pipe()
            answer = os.fork()
            if not answer:
                own.close()
                _close(ours, *children.values(), *others)
                return _child(asked, files[0], theirs, mask)
            children[answer] = ours
            _close(theirs, files[0])
        with suppress(OSError):  # Who asked is gone: there is no next request.
            own.send(json.dumps([asked["number"], answer]).encode())


def _status_of(pid: int, children: dict[int, int], statuses: dict[int, int]) -> int:
    if pid in children:
        statuses[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(children.pop(pid))
    return statuses[pid]


def _let_go(pipes: Iterable[int]) -> None:
    """Children go on without whoever is behind these."""
    for one in pipes:
        with suppress(BrokenPipeError):  # That one has ended.
            os.write(one, b".")


def _close(*handles: int) -> None:
    for one in handles:
        os.close(one)


def _load_late() -> None:
    for place in LATE:
        with suppress(ImportError):  # The compiled ones may not be there.
            lazy.load(place)


def _ahead() -> Iterator[bool]:
    """Do a part of what each child would do for itself, at each step."""
    while lazy.ahead(optional=True) or write_ahead(1):
        yield True
    for name in [name for name in sys.modules if name.startswith("jsctl.api.")]:
        for one in [*vars(sys.modules[name]).values()]:
            if isinstance(one, type) and is_dataclass(one) and one.__module__ == name:
                keys_of(one)
                yield True


def _child(asked: Mapping[str, Any], log: int, owner: int, mask: Iterable[int]) -> list[str]:
    os.chdir(asked["directory"])
    _become({**asked["environment"], OWNER: str(owner)}, log, mask)
    words: list[str] = asked["words"]
    return words


def _next(own: socket.socket) -> tuple[bytes, list[int]]:
    """A request and its file; no bytes if there is nobody any more."""
    try:
        request, files, _, _ = socket.recv_fds(own, PACKET_BYTES, 1)
    except OSError:  # Its end was closed before it read an answer.
        return b"", []
    return request, files


def _running(handles: Iterable[int]) -> list[int]:
    """Those of processes that have not ended; the others are closed."""
    found = []
    for handle in handles:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        if poller.poll(0):
            os.close(handle)
        else:
            found.append(handle)
    return found


def _kill(children: Iterable[int], others: Iterable[int]) -> None:
    for pid in children:
        os.kill(pid, signal.SIGKILL)  # To a zombie it does nothing.
    for handle in others:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)


def _become(environment: Mapping[str, str], log: int, mask: Iterable[int]) -> None:
    """What a new process has: its own variables, signals and output."""
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def main() -> NoReturn:
    """Fork for whoever has the other end; the children leave as brokers."""
    gc.disable()
    words = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv[1:] = ["broker", *words]
    serve_broker(words)


if __name__ == "__main__":
    main()
