"""A replica goes on from what its disk has, when an operator says that nobody has more.

Its log lost entries that its state had applied already, or it does not know any more who votes. So
the state is made durable as it is, as that of the last entry which anything here speaks of, and
the log begins anew behind it. No entry gets the index of one that was applied.
"""

from jsctl.broker.raft import codec
from jsctl.broker.raft.types import Members
from jsctl.broker.replication.drafts import Draft
from jsctl.broker.replication.group import RaftGroup, SyncJob
from jsctl.broker.replication.groups import Groups
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class SalvageJob:
    """The job that makes the state durable, and what is to follow."""

    work: SyncJob
    term: int
    members: Members
    quorum: int

    @property
    def index(self) -> int:
        """What the state stands for."""
        return self.work.index

    def run(self) -> None:
        """Write and sync. Raises DiskError."""
        self.work.run()


def is_needed(group: RaftGroup) -> bool:
    """Whether the log does not reach what the state has, or tells of no voters."""
    raft = group.raft
    return not raft.volatile and (raft.reached > raft.last_index or not raft.members.voters)


def begin(groups: Groups, group: RaftGroup, assigned: Members, quorum: int) -> str:
    """Have the state written; `assigned` are the members if the log knows none. Why not, or ""."""
    raft = group.raft
    if group.checkpoint_running or group.replacing:
        return "its state is being written, ask again"
    members = raft.members if raft.members.voters else assigned
    index, term = max(raft.reached, raft.last_index) + 1, max(raft.term, 1)
    work = group.unit.checkpoint(index, term, codec.encode_members(members))
    if work is None:
        return "there is no room for its state"
    if isinstance(work, Draft):
        work.finish()
    groups.checkpoints.run(group, SalvageJob(work, term, members, quorum))
    return ""


def finish(groups: Groups, group: RaftGroup, job: SalvageJob) -> str:
    """The state is durable: the log begins behind it. Why it does not lead then, or ""."""
    raft = group.raft
    if group.gone:
        return ""
    group.unit.checkpointed(job.work)
    if raft.leader is not None or job.index <= raft.commit:
        group.unit.state_overtaken()
        groups.checkpoints.soon(group)
        return "raft: leader is known"
    raft.restore(job.index, job.term, job.members)
    group.members, group.applied_term = job.members, job.term
    group.checkpointed = max(group.checkpointed, job.index)
    groups.wal.release(group.key, job.index)
    group.unit.caught_up()
    reason = raft.rescue(job.quorum)
    groups.touch(group)
    return reason
