"""What this server has of streams and consumers that left it, or were deleted.

Their records in the log are kept until nothing can bring them back. Files go with them, but those
of what was removed while this server was down: the meta log tells of that, and is followed, as long
as others keep it. Behind it there is only the state that it led to. What the log here named before,
and that state does not, was removed by an entry of the same log: unless an operator had the meta
group go on without a majority since, which may have lost what named it. Then files stay.
"""

from collections.abc import Callable, Iterable

from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.assets.prepared import ROOTS
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.raft.types import RESCUED_TERMS
from jsctl.broker.replication.bootstrap import GroupBootstrap
from jsctl.broker.replication.group import GroupKind
from jsctl.broker.turn import LogLevel


def forget(context: ReplicaContext, starter: GroupBootstrap, here: Callable[[], set[str]]) -> None:
    """Now and then: let go of it. `here`: the groups that are on this server, or are to be."""
    meta = context.groups.by_name.get(META_GROUP)
    if meta is None:
        return
    if starter.doubtful and context.knows_all:
        starter.expect(meta.raft.applied)
    if starter.tombstones:
        left = starter.forget(meta.checkpointed, {name.encode() for name in here()})
        known = starter.meta_term
        if known is not None and meta.raft.term - known < RESCUED_TERMS:
            _remove(context, left)


def _remove(context: ReplicaContext, groups: Iterable[bytes]) -> None:
    for key in groups:
        name = key.decode()
        directory = f"{ROOTS[name.startswith(GroupKind.CONSUMER.value)]}/{name}"
        if context.disk.list(directory):
            context.groups.removals.discard(context.disk, directory)
            text = f"Removed '{directory}', which was deleted or moved while this server was down"
            context.log(LogLevel.INFO, text)
