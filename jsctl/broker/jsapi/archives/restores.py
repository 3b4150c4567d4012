"""The restores of this server, from the request to the answer of the stream that came of it.

The meta leader checks a request and places the stream (`handlers.archives`). The server that is to
lead it first receives the archive; when it has all of it durable, it asks the meta leader, whoever
that is by then, to assign the stream with its consumers, in one entry. Their groups begin here,
with this server alone, and grow to where they are to be by transfers of state. Whoever restores is
answered when all replicas that are there have everything: until then the loss of one server might
stop the stream.
"""

import sys
from collections.abc import Callable
from dataclasses import field

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, dumps, loads
from jsctl.api.errors import ApiError, api_error
from jsctl.api.responses import StreamRestoreResponse
from jsctl.api.words import Retention
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.prepared import Foundation, PreparedConsumer, PreparedStream
from jsctl.broker.assets.replicas.facts import ArchiveEvent, ArchiveNews, StreamServes
from jsctl.broker.assets.replicas.replica_files import ReplicaFiles
from jsctl.broker.assets.replicas.stored_stream import StoredStream
from jsctl.broker.errors import BrokerError
from jsctl.broker.handlers import consumer_create
from jsctl.broker.handlers.answers import head
from jsctl.broker.handlers.archives import INSTALL
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.consumers.config import TakenSubjects
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    StreamAssignment,
    consumer_document,
    stream_document,
    stream_from,
)
from jsctl.broker.jetstream.quotas import TierLimits
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.archives.building import CONFIG_INDEX, ArchivedConsumer, RestoreBuild
from jsctl.broker.jsapi.archives.restore import Restore, RestoreStage
from jsctl.broker.jsapi.archives.room import RestoreRoom
from jsctl.broker.jsapi.archives.subjects import BEGIN, DONE, ID_LENGTH
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.jsapi.served import answer_body
from jsctl.broker.peers.items import Forward
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.replication.state_file import LoadedState
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass, replace

RESTORES_MAX = 32
RESTORES_OF_ACCOUNT_MAX = 24
"""Under way on a server at a time, and of one account; more are refused."""
INSTALL_REPEAT_NS = 3_000_000_000
SPREAD_NS = 1800_000_000_000
"""So long the answer waits for replicas that get the content, at most."""
ABSENT_NS = 30_000_000_000
"""So long it waits for most replicas to be there."""
CONSUMER_INDEX = 1
LOOK_NS = 50_000_000
_WAITING = (RestoreStage.INSTALLING, RestoreStage.SPREADING)
UNAVAILABLE = 10008
"""Error code of a request that found no leader."""


@dataclass(slots=True)
class Restores:
    """See the module."""

    view: ApiView
    engine: Engine
    answer: Callable[[ApiRequest, bytes], None]
    take: Callable[[ApiRequest], None]
    open: dict[str, Restore] = field(default_factory=dict)
    """Those under way, by their ids. Only changed here."""
    _served: dict[str, tuple[StreamServes, int]] = field(default_factory=dict)
    """Streams that serve, and until when others are waited for; by the id of the restore."""
    _room: RestoreRoom = field(init=False)

    def __post_init__(self) -> None:
        self._room = RestoreRoom(self.view)

    # The begin

    def begin(self, request: ApiRequest, made: StreamAssignment) -> None:
        """Receive an archive here, or have the server do so that is to hold the stream."""
        receiver = made.group.preferred
        if receiver == self.view.me:
            self._receive(request, made)
            return
        payload = dumps(stream_document(made))
        asked = replace(request, subject=BEGIN, payload=payload, headers=b"")
        self.engine.outbox.parcel(receiver).forwards.append(Forward(1, asked))

    def asked(self, request: ApiRequest) -> bool:
        """A server asks this one; False if somebody else has to decide."""
        if request.subject != BEGIN:
            return False
        document = jsontext.parse_object(request.payload, bytes_max=jsontext.OWN_BYTES_MAX)
        made = stream_from(document)
        assert made.request is not None
        self._receive(made.request, made)
        return True

    def _receive(self, request: ApiRequest, made: StreamAssignment) -> None:
        others = [one for one in self.open.values() if one.assignment.account == made.account]
        if len(self.open) >= RESTORES_MAX or len(others) >= RESTORES_OF_ACCOUNT_MAX:
            why = "too many restores are under way on this server"
            self._refuse(request, api_error("JSStreamRestoreErrF", err=why))
            return
        try:
            restore = self._new(made)
        except BrokerError as error:
            self._refuse(request, api_error("JSStreamRestoreErrF", err=error))
            return
        self.open[restore.id] = restore
        self.engine.assets.prepared.receiving.add(made.group.name)
        self.engine.context.log(LogLevel.INFO, f"Starting restore for stream '{restore.name}'")
        self._tell(ArchiveEvent.RESTORE_CREATE, restore)
        target = restore.deliver_subject.decode()
        body = StreamRestoreResponse(
            head=head("stream_restore"), deliver_subject=target, jsctl_whole=True
        )
        self.answer(request, dumps(body))

    def _refuse(self, request: ApiRequest, error: ApiError) -> None:
        self.answer(request, dumps(StreamRestoreResponse(head=head("stream_restore", error))))

    def _consumers_max(self, made: StreamAssignment) -> int:
        """So many are read; which tiers they are in is seen when all of them are there."""
        quota = self.view.account(made.account)
        limits = None if quota is None else quota.maybe_limits(made.config.num_replicas)
        tiered = quota is not None and quota.tiered
        bound = consumer_create.own_consumers_max if tiered else consumer_create.consumers_max
        most = bound(made, limits or TierLimits(), self.view.config_limits.consumers_default_max)
        return most if most >= 0 else sys.maxsize

    def _new(self, made: StreamAssignment) -> Restore:
        context, group = self.engine.context, made.group
        directory = f"streams/{group.name}"
        base = Foundation(group, directory, context.disk, CONFIG_INDEX)
        stored = StoredStream.load(context, directory, made, LoadedState(None))
        options = self.view.options
        build = RestoreBuild(
            stored.stream,
            self.view.now_ns,
            options.client.payload_bytes_max,
            self._consumers_max(made),
        )
        number = self.view.new_name(ID_LENGTH)
        return Restore(
            context,
            number,
            made,
            f"$JS.SNAPSHOT.RESTORE.{made.name}.{number}".encode(),
            PreparedStream(base, stored),
            build,
            lambda one: self._room.refusal(one, self.open.values()),
            self._whole,
            self._failed,
            self.view.now_ns,
        )

    # Once a turn

    def captured(self, sink: Sink) -> bool:
        """Chunks came in; False if the sink is not of a restore."""
        owner = sink.owner
        if not isinstance(owner, Restore):
            return False
        owner.captured()
        return True

    def work(self) -> None:
        """Go on with all of them."""
        now_ns = self.view.now_ns
        for one in list(self.open.values()):
            one.work()
            if one.stage is RestoreStage.INSTALLING and now_ns >= one.asked_ns + INSTALL_REPEAT_NS:
                self._install(one)
            elif one.stage is RestoreStage.SPREADING:
                self._look_at_replicas(one)

    def next_due_ns(self) -> int | None:
        """When `work` has something to do, though nothing happens."""
        due = [one.next_due_ns() for one in self.open.values()]
        if any(
            one.stage in (RestoreStage.INSTALLING, RestoreStage.SPREADING)
            for one in self.open.values()
        ):
            due.append(self.view.now_ns + LOOK_NS)
        return min((at for at in due if at is not None), default=None)

    # The archive is whole

    def _whole(self, one: Restore) -> None:
        try:
            taken = TakenSubjects()
            consumers = [self._consumer(one, archived, taken) for archived in one.build.consumers]
            configs = [made.config for _, made in consumers]
            consumer_create.check_restored(self.view, one.assignment, configs)
        except ApiError as error:
            one.fail(error)
            return
        self.engine.assets.prepared.receiving.update(own.base.group.name for own, _ in consumers)
        assignments = [made for _, made in consumers]
        one.keep([own for own, _ in consumers], lambda: self._begin_install(one, assignments))

    def _consumer(
        self, one: Restore, archived: ArchivedConsumer, taken: TakenSubjects
    ) -> tuple[PreparedConsumer, ConsumerAssignment]:
        """A consumer of the archive as a replica, and as it is to be assigned. Raises ApiError."""
        made, context = one.assignment, self.engine.context
        group, config = consumer_create.restored(
            self.view, made, archived.name, archived.config, taken
        )
        archived.config = config
        lives = dict(group.incarnations)
        if group.storage == "file":
            lives.pop(self.view.me, None)
        group = replace(group, preferred=self.view.me, founders=(self.view.me,), incarnations=lives)
        directory = f"consumers/{group.name}"
        consumer = Consumer(
            made.name,
            config.name,
            config,
            created_ns=self.view.now_ns,
            acks_watched=made.config.retention is not Retention.LIMITS,
        )
        if not consumer.state.acks_needed:
            archived.state.pending.clear()
        consumer.state.decode(archived.state.encode())
        base = Foundation(group, directory, context.disk, CONSUMER_INDEX)
        prepared = PreparedConsumer(base, consumer, ReplicaFiles(context.disk, directory))
        assigned = ConsumerAssignment(
            made.account,
            made.name,
            config.name,
            config,
            group,
            self.view.now_ns,
            made.client,
            None,
        )
        return prepared, assigned

    def _begin_install(self, one: Restore, consumers: list[ConsumerAssignment]) -> None:
        prepared = self.engine.assets.prepared
        prepared.streams[one.assignment.group.name] = one.prepared
        for own in one.consumers:
            prepared.consumers[own.base.group.name] = own
        one.payload = dumps(
            {
                "stream": stream_document(one.final_assignment),
                "consumers": list(map(consumer_document, consumers)),
            }
        )
        self._install(one)

    def _install(self, one: Restore) -> None:
        one.asked_ns = self.view.now_ns
        request = one.assignment.request
        assert request is not None
        self.take(
            replace(
                request,
                subject=INSTALL,
                reply=DONE + one.id.encode(),
                headers=b"",
                payload=one.payload,
                entry=self.view.me,
            )
        )

    def told(self, reply: bytes, payload: bytes) -> bool:
        """The meta leader answers; False if that is not for a restore."""
        if not reply.startswith(DONE):
            return False
        one = self.open.get(reply.removeprefix(DONE).decode())
        if one is None or one.stage is not RestoreStage.INSTALLING:
            return True
        error = _error_of(payload)
        if error is None:
            one.installed()
        elif error.err_code != UNAVAILABLE:
            self._forget_prepared(one)
            one.fail(error)
        return True

    def _forget_prepared(self, one: Restore) -> None:
        prepared = self.engine.assets.prepared
        prepared.streams.pop(one.assignment.group.name, None)
        for own in one.consumers:
            prepared.consumers.pop(own.base.group.name, None)

    # The stream is there

    def served(self, fact: StreamServes) -> bool:
        """A stream serves; False if it was not restored here."""
        for one in self.open.values():
            if one.assignment.group.name == fact.assignment.group.name:
                self._served[one.id] = fact, self.view.now_ns + SPREAD_NS
                if one.stage is RestoreStage.INSTALLING:
                    one.installed()
                self._look_at_replicas(one)
                return True
        return False

    def _look_at_replicas(self, one: Restore) -> None:
        """Answer when the replicas that are there have everything."""
        known = self._served.get(one.id)
        if known is None:
            if self.view.now_ns >= one.asked_ns + ABSENT_NS:
                self._end(one, "")  # Somebody else leads and has answered, or nobody does.
            return
        fact, until_ns = known
        group = self.engine.groups.by_name.get(fact.assignment.group.name)
        if group is None:
            self._end(one, "the stream was deleted")
            return
        if not self._is_spreading(one, group, until_ns):
            one.say(answer_body(self.view, fact))
            self._end(one, "")

    def _is_spreading(self, one: Restore, group: RaftGroup, until_ns: int) -> bool:
        """Whether it is worth to wait for replicas that are not voters of the group yet."""
        now_ns, peers = self.view.now_ns, one.assignment.group.peers
        missing = [peer for peer in peers if peer not in group.raft.members.voters]
        if not missing or not group.leading:
            return False
        if any(map(self.engine.cluster.online, missing)):
            return now_ns < until_ns
        return 2 * len(missing) >= len(peers) and now_ns < one.asked_ns + ABSENT_NS

    # Ends

    def _failed(self, one: Restore, why: str) -> None:
        text = f"Restore failed for stream '{one.name}': {why}"
        self.engine.context.log(LogLevel.WARNING, text)
        self._end(one, why)

    def _end(self, one: Restore, why: str) -> None:
        if one.stage is not RestoreStage.OVER:
            one.over()
        del self.open[one.id]
        self._served.pop(one.id, None)
        receiving = self.engine.assets.prepared.receiving
        receiving.discard(one.assignment.group.name)
        receiving.difference_update(own.base.group.name for own in one.consumers)
        if not why:
            text = f"Completed restore of {one.received_bytes} bytes for stream '{one.name}'"
            self.engine.context.log(LogLevel.INFO, text)
        self._tell(ArchiveEvent.RESTORE_COMPLETE, one)

    def _tell(self, event: ArchiveEvent, one: Restore) -> None:
        made = one.assignment
        news = ArchiveNews(
            event, made.account, made.name, made.client, one.began_ns, bytes=one.received_bytes
        )
        self.engine.context.facts.append(news)


def _error_of(payload: bytes) -> ApiError | None:
    """The error that an answer tells of."""
    try:
        found = loads(StreamRestoreResponse, payload).head.error
    except DecodeError as error:
        return api_error("JSStreamRestoreErrF", err=error)
    return None if found is None else ApiError(found.code, found.err_code, found.description)
