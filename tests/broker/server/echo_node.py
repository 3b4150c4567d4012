"""A small real node: speaks INFO, PING, PONG, and uses every output that the edge performs."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryFile

from jsctl.broker.errors import DiskFull
from jsctl.broker.options import COMPATIBLE_VERSION, Options
from jsctl.broker.ports import Syncer
from jsctl.broker.turn import (
    Answer,
    Command,
    ConnKind,
    Dial,
    LinkDial,
    LogLevel,
    LogLine,
    TurnInputs,
    TurnOutputs,
    Verify,
)


@dataclass
class Batch:
    """Stands for a write: notes on which thread it ran."""

    ticket: int
    ran: list[str] = field(default_factory=list)
    failure: Exception | None = None
    is_brief: bool = True
    begun: Syncer | None = None
    """Who syncs it beside the loop."""
    file: int = -1
    """What stands for the log meanwhile."""

    @property
    def brief(self) -> "Batch | None":
        return self if self.is_brief else None

    def run(self) -> None:
        self.begin(None)
        self.promise()
        self.finish()

    def begin(self, syncer: Syncer | None) -> None:
        import threading

        self.ran.append(threading.current_thread().name if syncer is None else "beside")
        if isinstance(self.failure, DiskFull):
            raise self.failure
        if syncer is not None:
            self.begun = syncer
            with TemporaryFile() as file:
                self.file = os.dup(file.fileno())
            syncer.begin(self.file)

    def promise(self) -> None:
        if self.begun is not None:
            assert self.begun.end() == 0
            os.close(self.file)
        self.begun = None
        if self.failure is not None:
            raise self.failure

    def finish(self) -> None:
        """Nothing is left."""


class EchoNode:
    """Answers lines: PING, VERIFY password hash, DISK, DIAL port, HUB port, FLOOD size, QUIT, LATER
    ms."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.ports: dict[str, tuple[str, int]] = {}
        self.seen: list[TurnInputs] = []
        self.kinds: dict[int, int] = {}
        self.buffers: dict[int, bytes] = {}
        self.verifying: dict[int, int] = {}
        self.writing: dict[int, int] = {}
        self.later: list[tuple[int, int]] = []
        self.dialing: dict[int, int] = {}
        self.tokens = 0
        self.failure: Exception | None = None
        self.ran: list[str] = []
        """The threads that ran batches."""
        self.disk_failure: Exception | None = None
        self.batch = Batch
        self.again = False
        self.jobs: list[Batch] = []
        """Leave with the next batch."""
        """The turn that is told of a batch has another one."""
        self.raise_in_turn: Exception | None = None
        self.raise_in_reload: Exception | None = None
        self.reloaded: list[Options] = []

    def listening(self, kind: str, host: str, port: int, reached_at: Sequence[str]) -> None:
        self.ports[kind] = (host, port)

    def start(self, now_ns: int) -> TurnOutputs:
        if self.failure is not None:
            raise self.failure
        return TurnOutputs(logs=[LogLine(LogLevel.DEBUG, "recovered")])

    def try_out(self, options: Options) -> None:
        self.tried = options

    def reload(self, options: Options, *, by_claims: bool = False) -> None:
        if self.raise_in_reload is not None:
            raise self.raise_in_reload
        self.reloaded.append(options)

    def turn(self, inputs: TurnInputs, now_ns: int) -> TurnOutputs:
        self.seen.append(inputs)
        if self.raise_in_turn is not None:
            raise self.raise_in_turn
        out = TurnOutputs()
        for accepted in inputs.accepted:
            self.kinds[accepted.conn] = accepted.kind
            self.buffers[accepted.conn] = b""
            info = {"version": COMPATIBLE_VERSION, "tls": accepted.tls}
            if not accepted.dial_token:
                out.writes.append((accepted.conn, f"INFO {json.dumps(info)}\r\n".encode()))
            elif accepted.dial_token in self.dialing:
                done = self.dialing.pop(accepted.dial_token)
                out.writes.append((done, f"DIALED {accepted.tls}\r\n".encode()))
        for conn, chunk in inputs.chunks:
            *lines, rest = (self.buffers[conn] + chunk).split(b"\r\n")
            self.buffers[conn] = rest
            for line in lines:
                self.line(conn, line.decode(errors="replace").split(" "), now_ns, out)
        self.results(inputs, out)
        self.due(now_ns, out)
        return out

    def settle(self, now_ns: int) -> int | None:
        return min((at for at, _ in self.later), default=None)

    @property
    def unfinished(self) -> bool:
        return False

    @property
    def assets(self) -> int:
        return 0

    def line(self, conn: int, words: list[str], now_ns: int, out: TurnOutputs) -> None:
        self.tokens += 1
        match words:
            case ["PING"]:
                out.writes.append((conn, b"PONG\r\n"))
            case ["VERIFY", password, hashed]:
                self.verifying[conn] = conn
                out.verifies.append(Verify(conn, password.encode(), hashed.encode()))
            case ["DISK"]:
                self.writing[self.tokens] = conn
                out.disk.append(self.batch(self.tokens, self.ran, self.disk_failure))
                jobs, self.jobs = self.jobs, []
                out.disk += jobs
            case ["DIAL", port, *own]:
                self.dialing[self.tokens] = conn
                out.dials.append(Dial(self.tokens, "localhost", int(port), own=tuple(own)))
            case ["HUB", port]:
                self.dialing[self.tokens] = conn
                name, kind = "localhost", ConnKind.LEAF
                dial = LinkDial(self.tokens, name, int(port), kind)
                dial.tls, dial.tls_name = self.options.tls, name
                out.dials.append(dial)
            case ["FLOOD", size]:
                out.writes.append((conn, b"x" * int(size)))
            case ["LATER", ms]:
                self.later.append((now_ns + int(ms) * 1_000_000, conn))
            case ["BUG"]:
                raise ValueError("a bug")
            case ["QUIT"]:
                out.writes.append((conn, b"BYE\r\n"))
                out.closes.append((conn, "asked"))

    async def failures(self) -> list[str]:
        """Why batches failed that it was told of."""
        return [reason for one in self.seen for _, reason in one.disk_failed]

    def results(self, inputs: TurnInputs, out: TurnOutputs) -> None:
        for token, ok in inputs.verified:
            out.writes.append((self.verifying.pop(token), f"VERIFIED {ok}\r\n".encode()))
        for _, reason in inputs.disk_failed:
            out.exit = reason
        for ticket in inputs.synced:
            self.synced(ticket, out)
        for dial, _ in inputs.dial_failed:
            out.writes.append((self.dialing.pop(dial.token), b"NOT DIALED\r\n"))
        for query in inputs.queries:
            status = 404 if query.path == "/nope" else 200
            body = json.dumps({"path": query.path, "params": query.params}).encode()
            out.answers.append(Answer(query.token, status, "application/json", body))
        for command in inputs.commands:
            out.logs.append(LogLine(LogLevel.INFO, f"Command: {command.value}"))
            if command is Command.RELOAD:
                size = self.reloaded[-1].client.payload_bytes_max
                out.logs.append(LogLine(LogLevel.DEBUG, f"max_payload is {size} now"))
            if command is Command.LAME_DUCK:
                out.stop_accepting = True
            if command is Command.SHUTDOWN:
                out.exit = "asked"

    def synced(self, ticket: int, out: TurnOutputs) -> None:
        if ticket < 0:
            return
        conn = self.writing.pop(ticket)
        out.writes.append((conn, b"SYNCED\r\n"))
        if self.again:
            self.again = False
            self.line(conn, ["DISK"], 0, out)

    def due(self, now_ns: int, out: TurnOutputs) -> None:
        for at, conn in list(self.later):
            if at <= now_ns:
                self.later.remove((at, conn))
                out.writes.append((conn, b"NOW\r\n"))


if __name__ == "__main__":
    from jsctl.broker.app import main

    sys.exit(main(sys.argv[1:], lambda options, _id, _store: EchoNode(options), os._exit))
