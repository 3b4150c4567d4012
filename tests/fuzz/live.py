"""A broker in a process of its own, fuzzed on all its ports; an innocent client pings meanwhile.

The first byte of an input is the port (client, route, monitoring), the second what becomes of the
connection: closed, reset, or left open for a while.
"""

import contextlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import deque
from pathlib import Path

from tests.fuzz import requests
from tests.fuzz.mutate import mutated
from tests.fuzz.nodes import Pages, Session
from tests.fuzz.parsers import RouteHandshake, RouteParser
from tests.fuzz.target import SIZE_MAX, Target
from tests.support.ports import free_port
from tests.support.waiting import wait_for

ROUND_TRIP_S_MAX = 1.0
OPEN_MAX = 200
"""Connections left open at a time."""
CONNECT = b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n'
INFO = b'INFO {"server_id":"NX","server_name":"x","cluster":"C","host":"h","port":1}\r\n'
"""Of a server that does not exist."""
RESET = struct.pack("ii", 1, 0)


class Innocent(threading.Thread):
    """Pings all the while; `worst_s` is the longest answer so far."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._sent_s = 0.0
        self.worst_s = 0.0
        self.pings = 0
        self.gone = False
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self._ping()
        except OSError:
            self.gone = True

    def _ping(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            lines = connection.makefile("rb")
            connection.sendall(CONNECT)
            while not self.done.wait(0.002):
                self._sent_s = time.monotonic()
                connection.sendall(b"PING\r\n")
                while (line := lines.readline()) not in (b"PONG\r\n", b""):
                    if line == b"PING\r\n":
                        connection.sendall(b"PONG\r\n")
                if not line:
                    self.gone = True
                    return
                took = time.monotonic() - self._sent_s
                self._sent_s = 0.0
                self.worst_s = max(self.worst_s, took)
                self.pings += 1

    def waits_s(self) -> float:
        """How long the present ping is under way."""
        sent = self._sent_s
        return time.monotonic() - sent if sent else 0.0


class Live(Target):
    """See the module."""

    name = "live"
    share = 0.01
    cost_s_max = 5.0

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="fuzz")
        self._open: deque[socket.socket] = deque()
        self._ports = [free_port() for _ in range(3)]
        self._feeds: tuple[Target, ...] = (RouteParser(), RouteHandshake())
        self._begin()

    def _begin(self) -> None:
        client, route, monitor = self._ports
        where = self._directory.name
        command = [sys.executable, "-m", "jsctl", "broker", "-a", "127.0.0.1", "-p", str(client)]
        command += ["--cluster", f"nats://127.0.0.1:{route}", "--cluster_name", "C", "-n", "n1"]
        command += ["-m", str(monitor), "-sd", where, "-l", f"{where}/log"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_for(lambda: self._answers(client), "the broker listens", 30)
        # The first page loads what makes pages: a server that has settled has done so by itself.
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/varz", timeout=30) as page:
            page.read()
        self.innocent = Innocent(client)
        self.innocent.start()

    def _answers(self, port: int) -> bool:
        assert self._process.poll() is None, "the broker has ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    def close(self) -> None:
        for connection in self._open:
            connection.close()
        self.innocent.done.set()
        self._process.terminate()
        self._process.communicate(timeout=30)
        self._directory.cleanup()

    def summary(self) -> str:
        status = Path(f"/proc/{self._process.pid}/status")
        lines = status.read_text().split("\n") if status.exists() else []
        resident = next((line.split()[1] for line in lines if line.startswith("VmRSS")), "0")
        return (
            f"; worst of {self.innocent.pings:,} pings {self.innocent.worst_s * 1000:.0f} ms,"
            f" broker resident {int(resident) // 1024} MiB"
        )

    def seeds(self) -> list[bytes]:
        return [
            *[b"\x00\x00" + data for data in Session.samples],
            *[b"\x01\x00" + INFO + data for data in self._feeds[0].seeds()],
            *[b"\x01\x01INFO " + data + b"\r\n" for data in self._feeds[1].seeds()],
            *[b"\x02\x00GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % p.encode() for p in Pages.paths],
            b"\x02\x02GET /varz HTTP/1.1\r\nHost: x\r\n",
            b"\x02\x00POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"5\r\nhello\r\n0\r\n\r\n",
        ]

    def make(self, rng: random.Random, pool: list[bytes]) -> bytes:
        if rng.random() < 0.4:
            subject, _, body = requests.made(rng).partition(b"\n")
            line = b"SUB r 1\r\nPUB %b r %d\r\n%b\r\nPING\r\n" % (subject, len(body), body)
            return b"\x00\x00" + CONNECT + line
        chosen = pool[int(rng.random() * len(pool))]
        words = (*Session.words, *RouteParser.words, *RouteHandshake.words, *Pages.words)
        return chosen[:2] + mutated(rng, chosen[2:], words, SIZE_MAX)

    def run(self, data: bytes, rng: random.Random) -> None:
        if len(data) < 2:
            return
        connection = socket.create_connection(("127.0.0.1", self._ports[data[0] % 3]), 5)
        with contextlib.suppress(OSError):
            connection.settimeout(0.005)
            connection.sendall(data[2:])
            while connection.recv(1 << 16):
                pass
        if data[1] % 3 == 2:
            self._open.append(connection)
            if len(self._open) > OPEN_MAX:
                self._open.popleft().close()
        else:
            if data[1] % 3 == 1:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()
        self._check()

    def _check(self) -> None:
        innocent = self.innocent
        worst = max(innocent.worst_s, innocent.waits_s())
        ended = self._process.poll() is not None
        if not ended and not innocent.gone and worst < ROUND_TRIP_S_MAX:
            return
        innocent.done.set()
        if not ended:
            self._process.kill()
        _, said = self._process.communicate(timeout=30)
        stalls = self._stalls()
        self._begin()
        assert not ended, f"the broker ended: {said[-2000:].decode(errors='replace')}"
        raise AssertionError(f"an innocent client waits for {worst:.2f} s, or was closed: {stalls}")

    def _stalls(self) -> str:
        """What the broker itself says of long turns."""
        log = Path(self._directory.name, "log")
        text = log.read_text(errors="replace") if log.exists() else ""
        found = [line for line in text.split("\n") if "A turn took" in line]
        return found[-1] if found else "no turn was long"
