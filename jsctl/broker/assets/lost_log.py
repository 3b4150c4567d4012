"""A log of which a part is lost without a trace: which groups were in it nobody can tell.

Such a server may have voted in any group that was assigned to it, and have promised entries to
it. So until it knows all assignments again, a group without a record here is in doubt, although
it was founded with this very disk. That outlives restarts, in a mark beside the log, for the log
itself is sound again from the next start on.
"""

from jsctl.broker.assets.meta import group_file as founding_file
from jsctl.broker.ports import Disk
from jsctl.broker.replication import state_file
from jsctl.broker.replication.state_file import GroupState, WriteState
from jsctl.broker.store.wal.recovery import Recovered

MARK = "log-lost"
REMEDY = (
    "no other server has what was in it: JetStream waits until an operator has it go on with what"
    " else is on the disk, by `jsctl server cluster rescue`, then for each stream without a leader"
    " `jsctl stream cluster rescue STREAM`; or stop the server and restore its store"
)


def find_loss(disk: Disk, recovered: Recovered, *, alone: bool = False) -> str:
    """What is known of a loss, in this run or an earlier one; empty when the log is complete.

    Noted among the damage, too, with what a server that is `alone` can do. Raises DiskError.
    """
    what = _loss(disk, recovered)
    if what:
        then = REMEDY if alone else "groups without a record are in doubt until filled up"
        recovered.damage.append(f"{what}; {then}")
    return what


def _loss(disk: Disk, recovered: Recovered) -> str:
    if disk.exists(MARK):
        return "part of the log was lost in an earlier run"
    what = ""
    if recovered.unsure:
        what = "part of the log is lost"
    elif recovered.empty and _had_a_log(disk, recovered):
        what = "the log is lost"
    if what:
        disk.make_directory(MARK)
        WriteState(disk, MARK, GroupState(1, 0, 0, b"", what.encode()), ()).run()
    return what


def _had_a_log(disk: Disk, recovered: Recovered) -> bool:
    """A log is made before the first meta group, with blanks and a reserve, and what follows its
    first segment begins with frames; a meta state was in a log before."""
    if not disk.exists(founding_file.DIRECTORY):
        return False
    if recovered.first != 1 or recovered.files < 2 or recovered.zeros:
        return True
    written = state_file.load(disk, founding_file.META_DIRECTORY)
    return written.state is not None or bool(written.damage)


def forget_loss(disk: Disk) -> None:
    """Every group that was assigned to this server has a record again. Raises DiskError."""
    disk.remove_tree(MARK)
