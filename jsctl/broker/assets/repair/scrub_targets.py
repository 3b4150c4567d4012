"""What there is to be checked on a server, and what is done about damage in it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from jsctl.broker.assets import assigned_files
from jsctl.broker.assets.assets import Assets
from jsctl.broker.assets.meta import group_file
from jsctl.broker.assets.repair.repairs import Repairs
from jsctl.broker.assets.repair.scrubber import ScrubTarget
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.errors import Damaged, DiskError, DiskFull
from jsctl.broker.ports import Disk
from jsctl.broker.replication import state_file
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.store import identity
from jsctl.broker.store.scrub import SMALL_BYTES_MAX, FileCheck, LogCheck
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """The log, the identity of the store, the state of the meta group, and what says what the data
    of a server alone is."""

    context: ReplicaContext
    assets: Assets
    name: str = ""

    def checks(self) -> Sequence[FileCheck]:
        """See `ScrubTarget`."""
        return [
            *self.context.groups.wal.resting(),
            *identity.resting(),
            *state_file.resting(group_file.DIRECTORY),
            *state_file.resting(group_file.META_DIRECTORY),
            *self.assets.written.resting(),
        ]

    def found(self, check: FileCheck) -> bool:
        """See `ScrubTarget`."""
        if isinstance(check, LogCheck):
            return self.context.groups.wal.suspect(check)
        if assigned_files.is_one(check.path):
            return self.assets.written.found(check)
        if check.path.startswith(group_file.META_DIRECTORY):
            meta = self.context.groups.by_name.get(group_file.META_GROUP)
            if meta is not None:
                rewrite_state(self.context, meta)
        else:
            self._write_anew(check.path)
        return True

    def _write_anew(self, path: str) -> None:
        """Without room for it, or a copy that is sound and can be read in this moment, the next
        pass finds the same again: this process knows who it is."""
        try:
            write = sound_copy(self.context.disk, path)
        except (Damaged, DiskError):
            return
        with suppress(DiskFull):
            if write is not None:
                write()


def mend_at_start(context: ReplicaContext) -> None:
    """One copy of what says who this server is may be damaged: the next damage must not meet the
    other one first. Raises Damaged when both are, DiskError."""
    for check in (*identity.resting(), *state_file.resting(group_file.DIRECTORY)):
        while not check.done:
            check.step(context.disk, SMALL_BYTES_MAX)
        # Without room for it, the next pass finds the same again.
        with suppress(DiskFull):
            if check.damage and (write := sound_copy(context.disk, check.path)) is not None:
                write()
                context.log(LogLevel.ERROR, f"Damaged: {check.damage}; it was written anew")


def sound_copy(disk: Disk, path: str) -> Callable[[], None] | None:
    """What writes both copies of what a damaged file said, from the sound one; None if there is
    none. Raises Damaged when both are damaged, and DiskError; the writing DiskError."""
    if path.startswith(group_file.DIRECTORY):
        founding = group_file.read_founding(disk)
        write = partial(group_file.write_founding, disk)
        return None if founding is None else partial(write, founding)
    known = identity.read(disk)
    return None if known is None else partial(identity.write, disk, known)


@dataclass(frozen=True, slots=True)
class ConsumerTarget:
    """A replica of a consumer."""

    replica: ConsumerReplica

    @property
    def name(self) -> str:
        """See `ScrubTarget`."""
        return self.replica.group.name

    def checks(self) -> Sequence[FileCheck]:
        """See `ScrubTarget`."""
        gone = self.replica.group.gone
        return [] if gone else state_file.resting(self.replica.files.directory)

    def found(self, check: FileCheck) -> bool:
        """See `ScrubTarget`."""
        if self.replica.group.gone:
            return False
        rewrite_state(self.replica.context, self.replica.group)
        return True


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """A replica of a stream."""

    replica: StreamReplica
    repairs: Repairs

    @property
    def name(self) -> str:
        """See `ScrubTarget`."""
        return self.replica.group.name

    def checks(self) -> Sequence[FileCheck]:
        """See `ScrubTarget`."""
        replica = self.replica
        if replica.group.gone:
            return []
        return [*replica.store.resting(), *state_file.resting(replica.stored.files.directory)]

    def found(self, check: FileCheck) -> bool:
        """See `ScrubTarget`."""
        replica = self.replica
        if replica.group.gone:
            return False
        if check.path.startswith(f"{replica.stored.files.directory}/state."):
            rewrite_state(replica.context, replica.group)
            return True
        concerned = replica.store.suspect(check)
        if concerned is not None:
            self.repairs.look_at(replica, *concerned)
        return concerned is not None


def rewrite_state(context: ReplicaContext, group: RaftGroup) -> None:
    """Have both copies of a group's state written anew: what it says is in memory."""
    checkpoints = context.groups.checkpoints

    def once_more() -> None:
        if not group.gone:
            group.unit.state_overtaken()
            checkpoints.soon(group)

    group.unit.state_overtaken()
    checkpoints.soon(group)
    checkpoints.when_written(group, once_more)


def all_targets(context: ReplicaContext, assets: Assets, repairs: Repairs) -> Iterator[ScrubTarget]:
    """Everything on this server; what comes while a pass goes on may be left out."""
    yield ServerTarget(context, assets)
    for stream in list(assets.streams.values()):
        if not stream.volatile:
            yield StreamTarget(stream, repairs)
    for consumer in list(assets.consumers.values()):
        yield ConsumerTarget(consumer)
