"""The archives under way on this server: snapshots that leave, restores that come in.

What an archive is made of is in `snapshot` and `restore`; here they begin, are given what they
wait for, and end.
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from jsctl.api.codec import dumps, loads
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.errors import ApiError, api_error
from jsctl.api.responses import StreamSnapshotResponse
from jsctl.api.stream import StreamState
from jsctl.broker import lazy
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.replicas.facts import ArchiveEvent, ArchiveNews, StreamServes
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.decisions import BeginRestore, SendSnapshot
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.archives.subjects import ID_LENGTH, is_internal
from jsctl.broker.jsapi.gathering import Asset, Gathering, Info
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.handlers import answers
    from jsctl.broker.jsapi.archives import contents, restores, snapshot
    from jsctl.broker.jsapi.archives.restores import Restores
    from jsctl.broker.jsapi.archives.snapshot import Snapshot
else:
    answers = lazy.module("jsctl.broker.handlers.answers")
    contents = lazy.module("jsctl.broker.jsapi.archives.contents")
    restores = lazy.module("jsctl.broker.jsapi.archives.restores")
    snapshot = lazy.module("jsctl.broker.jsapi.archives.snapshot")

SNAPSHOTS_MAX = 32
SNAPSHOTS_OF_ACCOUNT_MAX = 24
"""Under way on a server at a time, and of one account; more are refused."""


@dataclass(slots=True)
class Archives:
    """See the module."""

    view: ApiView
    engine: Engine
    gathering: Gathering
    answer: Callable[[ApiRequest, bytes], None]
    take: Callable[[ApiRequest], None]
    """Route a request of this server itself to who decides on it."""
    _snapshots: "list[Snapshot]" = field(default_factory=list)
    _restores: "Restores | None" = None

    @property
    def under_way(self) -> bool:
        """Whether there are some."""
        return bool(self._snapshots) or (self._restores is not None and bool(self._restores.open))

    # Once a turn

    def go_on(self) -> None:
        """What the disk has done, and time, set some free."""
        for one in list(self._snapshots):
            one.work()
        if self._restores is not None:
            self._restores.work()

    def captured(self, sink: Sink) -> bool:
        """Acknowledgements or chunks came in; False if the sink is not of an archive."""
        for one in self._snapshots:
            if sink.owner is one:
                one.acked()
                one.work()
                return True
        return self._restores is not None and self._restores.captured(sink)

    def next_due_ns(self) -> int | None:
        """When `go_on` has something to do, though nothing happens."""
        due = [one.next_due_ns() for one in self._snapshots]
        if self._restores is not None:
            due.append(self._restores.next_due_ns())
        return min((at for at in due if at is not None), default=None)

    def carry_out(self, request: ApiRequest, decision: SendSnapshot | BeginRestore) -> None:
        """Begin what was decided."""
        if isinstance(decision, SendSnapshot):
            self._send(request, decision)
        else:
            self._all_restores().begin(request, decision.assignment)

    # Snapshots

    def _send(
        self, request: ApiRequest, decision: SendSnapshot, infos: "dict[Asset, Info] | None" = None
    ) -> None:
        """Begin a snapshot of a stream that is led here, when it is known how those of its
        consumers stand that have no replica here."""
        group = self.engine.groups.by_name.get(decision.group)
        replica = None if group is None else group.unit
        if not isinstance(replica, StreamReplica) or replica.leading is None:
            self._refuse(request, api_error("JSClusterNotAvailErr"))
            return
        others = [one for one in self._snapshots if one.request.account == request.account]
        if len(self._snapshots) >= SNAPSHOTS_MAX or len(others) >= SNAPSHOTS_OF_ACCOUNT_MAX:
            why = "too many snapshots are under way on this server"
            self._refuse(request, api_error("JSStreamSnapshotErrF", err=why))
            return
        absent = [] if decision.asked.no_consumers else contents.elsewhere(self.view, replica)
        if absent and infos is None:
            account = request.account
            self.gathering.collect(account, absent, partial(self._send, request, decision))
            return
        infos = infos or {}
        missing = next((name for stream, name in absent if (stream, name) not in infos), None)
        if missing is not None:
            why = f"failed to get consumer state for '{replica.key[1]} > {missing}'"
            self._refuse(request, api_error("JSStreamSnapshotErrF", err=why))
            return
        made = snapshot.Snapshot(
            self.engine.context,
            replica,
            request,
            decision.asked,
            f"$JS.SNAPSHOT.ACK.{replica.key[1]}.{self.view.new_name(ID_LENGTH)}".encode(),
            self._ended,
            # Messages that come while those that are there are checked are not in the archive.
            partial(self._begun, contents.state_of(self.view, replica)),
            self.view.now_ns,
            {name: loads(ConsumerInfo, found) for (_, name), found in infos.items()},
        )
        self._snapshots.append(made)
        made.work()

    def _refuse(self, request: ApiRequest, error: ApiError) -> None:
        body = StreamSnapshotResponse(head=answers.head("stream_snapshot", error))
        self.answer(request, dumps(body))

    def _begun(self, state: StreamState, made: "Snapshot") -> Iterator[bytes]:
        """Answer, and say what the archive begins with; `state` is that of its messages."""
        config = contents.config_of(made.replica)
        body = StreamSnapshotResponse(
            head=answers.head("stream_snapshot"), config=config, state=state
        )
        self.answer(made.request, dumps(body))
        self._tell(ArchiveEvent.SNAPSHOT_CREATE, made, state=state)
        return contents.front(self.view, made, state)

    def _ended(self, made: "Snapshot", problem: str) -> None:
        self._snapshots.remove(made)
        if made.begun:
            self._tell(ArchiveEvent.SNAPSHOT_COMPLETE, made, error=problem)
        else:
            self._refuse(made.request, api_error("JSStreamSnapshotErrF", err=problem))

    def _tell(
        self,
        event: ArchiveEvent,
        made: "Snapshot",
        state: StreamState | None = None,
        error: str = "",
    ) -> None:
        account, stream = made.replica.key
        news = ArchiveNews(
            event, account, stream, made.request.client, made.began_ns, state=state, error=error
        )
        self.engine.context.facts.append(news)

    # Restores

    def _all_restores(self) -> "Restores":
        if self._restores is None:
            self._restores = restores.Restores(self.view, self.engine, self.answer, self.take)
        return self._restores

    def taken(self, request: ApiRequest) -> bool:
        """Whether a request is one that servers make of each other; it is acted upon then."""
        return is_internal(request) and self._all_restores().asked(request)

    def told(self, reply: bytes, payload: bytes) -> bool:
        """Whether an answer is for a restore of this server; it is acted upon then."""
        return self._restores is not None and self._restores.told(reply, payload)

    def served(self, fact: StreamServes) -> bool:
        """Whether a stream that serves was restored here: it is answered in time then."""
        return self._restores is not None and self._restores.served(fact)
