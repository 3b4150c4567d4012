"""One archive as it is received: chunks, their acknowledgements, and what is built of them.

Theory of operation. Chunks are worked off one after the other on the disk thread, a bounded piece
at a time; each is acknowledged when that is done, so a sender is as fast as the building is. An
empty chunk ends the archive. Then everything is made durable, here, away from every group: the
messages, the state of the stream's group and of its consumers' groups, and what the log has to
know of them. Only now the meta leader is asked to make a stream of it (`restores`). Whatever goes
wrong before ends in nothing: files are removed, and no group ever knew of them.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from enum import Enum

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError, api_error
from jsctl.api.responses import StreamCreateResponse
from jsctl.broker.assets.prepared import Prepared, PreparedConsumer, PreparedStream
from jsctl.broker.assets.replicas.listening import Listening
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.handlers.answers import head
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jsapi.archives.building import RestoreBuild
from jsctl.dataclass import dataclass, replace

STALL_NS = 5_000_000_000
"""So long a restore waits for the next chunk."""
WAITING_BYTES_MAX = 32 * 1024 * 1024
"""Of chunks that were sent and are not worked off."""
LOOK_NS = 100_000_000


class RestoreStage(Enum):
    """How far a restore is."""

    RECEIVING = "receiving"
    FINISHING = "finishing"
    """The archive is whole: what it holds becomes durable."""
    INSTALLING = "installing"
    """The meta leader is asked to make a stream of it."""
    SPREADING = "spreading"
    """The stream is there: other replicas get it."""
    OVER = "over"


def refusal(error: ApiError | str) -> bytes:
    """An error as the answer to a chunk."""
    if isinstance(error, str):
        error = api_error("JSStreamRestoreErrF", err=error)
    return dumps(StreamCreateResponse(head=head("stream_create", error)))


@dataclass(slots=True)
class Restore:
    """See the module. `whole` is told when the archive is, `ended` when there is no more to do
    for a restore that failed."""

    context: ReplicaContext
    id: str
    assignment: StreamAssignment
    deliver_subject: bytes
    prepared: PreparedStream
    build: RestoreBuild
    room: Callable[["Restore"], ApiError | None]
    """Why there is no room for what is stored; None if there is."""
    whole: Callable[["Restore"], None]
    ended: Callable[["Restore", str], None]
    began_ns: int
    stage: RestoreStage = RestoreStage.RECEIVING
    received_bytes: int = 0
    reply: bytes = b""
    """Where the last answer goes."""
    consumers: list[PreparedConsumer] = field(default_factory=list)
    payload: bytes = b""
    """What the meta leader is asked."""
    looked_bytes: int = 0
    """How much was stored when it was looked for room."""
    asked_ns: int = 0
    """When the meta leader was asked last."""
    sink: Sink = field(init=False)
    _listening: Listening = field(init=False)
    _waiting: deque[tuple[bytes, bytes]] = field(default_factory=deque)
    """(reply, chunk) of those to be worked off."""
    _waiting_bytes: int = 0
    _busy: bool = False
    """The disk thread has something of it."""
    _heard_ns: int = 0

    def __post_init__(self) -> None:
        self.sink = Sink(self)
        self._heard_ns = self.context.now_ns
        self._listening = Listening(self.context, self.assignment.account)
        self._listening.to(self.deliver_subject, self.sink)
        self._begin_job(self.prepared.base.mark, self._marked)

    @property
    def name(self) -> str:
        """Account and stream, for people."""
        return f"{self.assignment.account} > {self.assignment.name}"

    # Chunks

    def captured(self) -> None:
        """Chunks came in."""
        for _, reply, _, payload, _ in self.sink.take():
            if self.stage is not RestoreStage.RECEIVING:
                continue
            if not reply:
                self.fail(f"restore for stream '{self.name}' requires reply subject for each chunk")
                return
            self._waiting.append((reply, payload))
            self._waiting_bytes += len(payload)
            self.received_bytes += len(payload)
            if self._waiting_bytes > WAITING_BYTES_MAX:
                self.reply = reply
                self.fail("too many chunks are not acknowledged yet")
                return
        self.work()

    def work(self) -> None:
        """Go on with the next chunk, or give up a sender that is silent."""
        if self._busy or self.stage is not RestoreStage.RECEIVING:
            return
        if self._waiting:
            self.reply, chunk = self._waiting.popleft()
            self._waiting_bytes -= len(chunk)
            if chunk:
                self.build.feed(chunk)
                self._begin_job(self.build.work, self._worked)
            else:
                # Whoever waits for the end looks whether somebody listens here.
                self.stage = RestoreStage.FINISHING
                self._begin_job(self.build.finish, self._finished)
        elif self.context.now_ns >= self._heard_ns + STALL_NS:
            self.reply = b""
            self.fail(f"restore for stream '{self.name}' is stalled")

    def next_due_ns(self) -> int | None:
        """When `work` has something to do, though nothing happens."""
        if self._busy or self.stage is not RestoreStage.RECEIVING:
            return None
        return max(self._heard_ns + STALL_NS, self.context.now_ns + LOOK_NS)

    def _begin_job(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        self._busy = True
        self.context.groups.side_jobs.run(work, then)

    def _marked(self) -> None:
        self._end_job()
        self.work()

    def _end_job(self) -> bool:
        """The disk thread is done; whether that is still wanted."""
        self._busy = False
        self._heard_ns = self.context.now_ns
        if self.stage is RestoreStage.OVER:
            self._remove()
            return False
        return True

    def _worked(self) -> None:
        """Some of a chunk is worked off."""
        if not self._end_job():
            return
        error = self.build.problem or self.room(self)
        if error:
            self.fail(error)
        elif self.build.more:
            self._begin_job(self.build.work, self._worked)
        else:
            self.say(b"")
            self.work()

    def _finished(self) -> None:
        """All is built, but nothing is durable."""
        if not self._end_job():
            return
        error = self.build.problem or self.room(self)
        if error:
            self.fail(error)
        else:
            self.whole(self)

    # Durable

    def keep(self, consumers: list[PreparedConsumer], then: Callable[[], None]) -> None:
        """Make all of it durable; `then` the log knows of it, too."""
        self.consumers = consumers
        groups = self.context.groups
        for one in self._all():
            one.base.tell_log(groups.wal)
        groups.durability.flush()

        def saved() -> None:
            self.prepared.saved()
            if self._end_job():
                self.stage = RestoreStage.INSTALLING
                then()

        jobs = [one.job() for one in self._all()]

        def save() -> None:
            for job in jobs:
                job()

        self._busy = True
        groups.side_jobs.after_log(lambda: groups.side_jobs.run(save, saved))

    # Ends

    def say(self, payload: bytes) -> None:
        """Answer the chunk that was sent last."""
        if self.reply:
            answer = (self.reply, b"", b"", payload, b"")
            self.context.traffic.deliver(self.assignment.account, [answer])

    def fail(self, error: ApiError | str) -> None:
        """Nothing comes of it: whoever sends is told why, and what was built is removed."""
        self.say(refusal(error))
        self.stop()
        self.ended(self, str(error))

    def stop(self) -> None:
        """Nothing comes of it."""
        assert self.stage is not RestoreStage.OVER, "a restore ends once"
        self.stage = RestoreStage.OVER
        self._listening.end()
        self.sink = Sink()  # The former one holds this restore.
        self._waiting.clear()
        if not self._busy:
            self._remove()

    def _remove(self) -> None:
        for one in self._all():
            one.discard(self.context)

    def _all(self) -> list[Prepared]:
        return [self.prepared, *self.consumers]

    def installed(self) -> None:
        """The stream is assigned: what was built is no restore any more."""
        self.stage = RestoreStage.SPREADING
        kept = [one.base.unmark for one in self._all()]

        def unmark() -> None:
            for one in kept:
                one()

        self.context.groups.side_jobs.run(unmark, lambda: None)

    def over(self) -> None:
        """It is done."""
        self.stage = RestoreStage.OVER
        self._listening.end()
        self.sink = Sink()

    @property
    def final_assignment(self) -> StreamAssignment:
        """With whom to answer when the stream serves."""
        request = self.assignment.request
        assert request is not None
        final = replace(request, reply=self.reply, payload=b"", headers=b"", entry=self.context.me)
        return replace(self.assignment, request=final)
