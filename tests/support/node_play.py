"""A whole node in this process: a simulated disk, a clock that the test moves, clients as bytes."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

from jsctl.broker.node import Node
from jsctl.broker.options import (
    AccountJetStream,
    AccountOptions,
    JetStreamOptions,
    Options,
    RaftOptions,
    UserOptions,
)
from jsctl.broker.turn import (
    Accepted,
    Answer,
    Command,
    ConnKind,
    Dial,
    DiskBatch,
    Fault,
    Jitter,
    ProcessFacts,
    Query,
    TurnInputs,
    TurnOutputs,
)
from tests.support.sim_disk import SimDisk

START_NS = 1_790_000_000 * 1_000_000_000
STEP_NS = 50_000_000
SECOND_NS = 1_000_000_000
SERVER_ID = "NAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
LOG_BYTES = 1 << 19
"""Of a segment of the log: a disk of a play holds four of them, and a test has three disks."""
ROUNDS_MAX = 200

Message = tuple[str, str, bytes]
"""(subject, reply, payload)."""


def user(name: str) -> UserOptions:
    """A user whose password is the name."""
    return UserOptions(name=name, password=name)


def node_options(**more: Any) -> Options:
    """JetStream in account A (user a), the system account (user sys)."""
    options: dict[str, Any] = {
        "server_name": "n1",
        "accounts": (
            AccountOptions(name="A", users=(user("a"),), jetstream=AccountJetStream()),
            AccountOptions(name="B", users=(user("b"),)),
            AccountOptions(name="$SYS", users=(user("sys"),)),
        ),
        "jetstream": JetStreamOptions(
            enabled=True, store_dir="/data", memory_bytes_max=1 << 20, store_bytes_max=1 << 30
        ),
        "raft": RaftOptions(log_segment_bytes=LOG_BYTES),
    }
    return Options(**{**options, **more})


@dataclass(eq=False)
class PlayClient:
    """A connection to the node."""

    play: "NodePlay"
    conn: int
    messages: list[Message] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    """Everything else that came: INFO, PONG, -ERR."""
    heads: list[bytes] = field(default_factory=list)
    """The header blocks of `messages`."""
    _asked: int = 0

    def send(self, data: bytes) -> None:
        """Bytes of the client protocol; the node works until it is quiet."""
        self.play.turn(chunks=[(self.conn, data)])

    def log_in(self, name: str, password: str = "") -> None:
        """CONNECT; the password is the name unless given."""
        body: dict[str, object] = {"verbose": False, "pedantic": False, "headers": True}
        body |= {"user": name, "pass": password or name, "name": f"test {name}", "lang": "test"}
        self.send(f"CONNECT {json.dumps(body | {'protocol': 1})}\r\nPING\r\n".encode())

    def subscribe(self, pattern: str) -> None:
        """Listen."""
        self._asked += 1
        self.send(f"SUB {pattern} {self._asked}\r\n".encode())

    def publish(
        self, subject: str, payload: bytes = b"", reply: str = "", headers: bytes = b""
    ) -> None:
        """Say something."""
        sizes = f"{len(headers)} {len(headers) + len(payload)}" if headers else f"{len(payload)}"
        line = f"{'HPUB' if headers else 'PUB'} {subject} {reply} {sizes}\r\n".encode()
        self.send(line + headers + payload + b"\r\n")

    def request(self, subject: str, payload: bytes = b"", headers: bytes = b"") -> list[bytes]:
        """All answers that come without time going by."""
        self._asked += 1
        inbox = f"_INBOX.{self.conn}.{self._asked}"
        self.subscribe(inbox)
        self.publish(subject, payload, inbox, headers)
        return [payload for to, _, payload in self.messages if to == inbox]

    def ask(self, subject: str, **fields: object) -> Any:
        """The decoded answer to a request with a JSON payload."""
        (answer,) = self.request(subject, json.dumps(fields).encode() if fields else b"")
        return json.loads(answer)

    def heard(self, start: str) -> list[Any]:
        """Decoded messages whose subject starts so."""
        return [json.loads(body) for subject, _, body in self.messages if subject.startswith(start)]

    def take(self, data: bytes) -> None:
        """What the node sent."""
        while data:
            line, _, data = data.partition(b"\r\n")
            words = line.split()
            if not words or words[0] not in (b"MSG", b"HMSG"):
                self.lines.append(line)
                continue
            size = int(words[-1])
            head = int(words[-2]) if words[0] == b"HMSG" else 0
            sizes = 2 if head else 1
            reply = words[3].decode(errors="surrogateescape") if len(words) == 4 + sizes else ""
            subject = words[1].decode(errors="surrogateescape")
            self.messages.append((subject, reply, data[head:size]))
            self.heads.append(data[:head])
            data = data[size + 2 :]


class NodePlay:
    """Runs turns until nothing is left to do; time goes on only when the test says so."""

    def __init__(
        self,
        options: Options | None = None,
        disk: SimDisk | None = None,
        jitter: Jitter | None = None,
    ) -> None:
        rng = random.Random(7)
        self.disk = disk or SimDisk(rng)
        self.now_ns = START_NS
        self.clients: dict[int, PlayClient] = {}
        self.answers: list[Answer] = []
        self.exit: str | None = None
        self.hold_disk = False
        """Whether batches wait for the disk until this is over."""
        self._held: list[DiskBatch] = []
        self.faults: list[Fault] = []
        self.paused: set[int] = set()
        """Connections that the node does not want to be read now."""
        self.reloads = 0
        self.dials: list[Dial] = []
        """Connections that the node wanted to have."""
        self._synced: list[int] = []
        self.due_ns = START_NS + SECOND_NS
        """When the node wants its next turn."""
        self._next_conn = 1
        self.node = Node(
            options or node_options(),
            disk=self.disk,
            jitter=jitter or rng.randrange,
            server_id=SERVER_ID,
            incarnation="1" * 32,
        )
        self.node.listening("client", "127.0.0.1", 4222)
        self._perform(self.node.start(self.now_ns))
        self.turn(process=ProcessFacts(50_000_000, 12.5, 2, "python3.11"))
        self.run(2)

    def turn(self, **fields: Any) -> None:
        """A turn with inputs, then turns until the disk has nothing to report."""
        self._once(TurnInputs(**fields))
        for _ in range(ROUNDS_MAX):
            busy = self._synced or self.due_ns <= self.now_ns
            if not busy or self.exit is not None:
                return
            self._once(TurnInputs())
        raise AssertionError("the node is not quiet")

    def _once(self, inputs: TurnInputs) -> None:
        if self.exit is not None:
            return
        inputs.synced, self._synced = self._synced, []
        self._perform(self.node.turn(inputs, self.now_ns))

    def _perform(self, outputs: TurnOutputs) -> None:
        self.faults += outputs.faults
        self._held += outputs.disk
        batches = [] if self.hold_disk else self._held
        for batch in batches:
            batch.run()
            self._synced.append(batch.ticket)
        if batches:
            self._held = []
        for conn, data in outputs.writes:
            self.clients[conn].take(data)
        self.paused |= {*outputs.pauses}
        self.paused -= {*outputs.resumes}
        self.answers += outputs.answers
        self.reloads += outputs.reload
        self.dials += outputs.dials
        self.exit = outputs.exit
        self.due_ns = self.node.settle(self.now_ns) or self.now_ns + SECOND_NS

    def run(self, seconds: float) -> None:
        """Let time go by."""
        end = self.now_ns + int(seconds * SECOND_NS)
        while self.now_ns < end:
            self.now_ns += STEP_NS
            self.turn()

    def write_states(self) -> None:
        """Have the states of all groups written."""
        assert self.node.engine is not None
        groups = self.node.engine.groups
        for group in groups.by_name.values():
            groups.checkpoints.soon(group)
        self.run(2)

    def connect(self, name: str = "", password: str = "", *, said: bool = True) -> PlayClient:
        """A client that said CONNECT, unless it has not `said` anything yet."""
        conn, self._next_conn = self._next_conn, self._next_conn + 1
        client = self.clients[conn] = PlayClient(self, conn)
        self.turn(accepted=[Accepted(conn, ConnKind.CLIENT, "127.0.0.1", 40000 + conn)])
        if said:
            client.log_in(name, password)
        return client

    def hang_up(self, client: PlayClient) -> None:
        """The connection is gone."""
        self.turn(closed=[(client.conn, "Client Closed")])

    def get(self, path: str, **params: str) -> tuple[int, Any]:
        """Status and document of a monitoring page."""
        self.turn(queries=[Query(1, path, params)])
        answer = self.answers.pop()
        json_body = answer.content_type == "application/json"
        return answer.status, json.loads(answer.body) if json_body else answer.body.decode()

    def command(self, command: Command) -> None:
        """An operator's wish."""
        self.turn(commands=[command])
