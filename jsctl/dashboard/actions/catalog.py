"""What an operator may do from here: a table of actions, each with its plan.

Nothing here draws or asks. Requests go through the same `Manager` as the commands do; every
plan names the command line that does the same.
"""

from collections.abc import Callable

from jsctl.dashboard.actions import backup as backups
from jsctl.dashboard.actions import consumers, groups, streams
from jsctl.dashboard.actions.plans import Plan, Target, words
from jsctl.dashboard.model.snapshot import Consumer, Meta, Server, Snapshot, Stream
from jsctl.dataclass import dataclass

__all__ = ["ACTIONS", "Action", "Plan", "Target", "action_named", "show_command"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done. Without `plan` it has a dialog of its own.

    What is `local` writes files of this machine, and is not there behind a browser.
    """

    name: str
    key: str
    label: str
    suits: Callable[[Target, Snapshot], bool]
    plan: Callable[[Target, Snapshot], Plan] | None
    command: Callable[[Target], str]
    shown: bool = True
    local: bool = False

    def fits(self, target: Target, snapshot: Snapshot) -> bool:
        """Whether it can be done to that, with the rights that the snapshot shows."""
        if isinstance(target, Stream | Consumer):
            ours = snapshot.jetstream and target.account == snapshot.account
            return ours and self.suits(target, snapshot)
        return snapshot.system and self.suits(target, snapshot)


def action_named(name: str) -> Action:
    """The action of a name; KeyError."""
    return _BY_NAME[name]


def show_command(target: Target) -> str:
    """The command line that shows a thing."""
    if isinstance(target, Stream):
        return words("stream", "info", target.name)
    if isinstance(target, Consumer):
        return words("consumer", "info", target.stream, target.name)
    if isinstance(target, Server):
        return words("server", "info", target.name)
    return words("server", "report", "jetstream")


def _is_stream(target: Target, _snapshot: Snapshot) -> bool:
    return isinstance(target, Stream)


def _is_asset(target: Target, _snapshot: Snapshot) -> bool:
    return isinstance(target, Stream | Consumer)


def _is_consumer(target: Target, _snapshot: Snapshot) -> bool:
    return isinstance(target, Consumer)


def _leads(target: Target, snapshot: Snapshot) -> bool:
    if isinstance(target, Server):
        return snapshot.meta.leader == target.name and snapshot.meta.size > 1
    return not isinstance(target, Meta) and bool(target.leader) and len(target.peers) > 1


def _has_peers(target: Target, snapshot: Snapshot) -> bool:
    if isinstance(target, Server):
        return snapshot.meta.known
    return isinstance(target, Stream) and len(target.peers) > 1


def _is_pinned(target: Target, _snapshot: Snapshot) -> bool:
    return isinstance(target, Consumer) and any(client for _, client in target.pinned)


def _is_open(target: Target, _snapshot: Snapshot) -> bool:
    return isinstance(target, Stream) and not target.sealed


def _edit_command(target: Target) -> str:
    if isinstance(target, Consumer):
        return words("consumer", "edit", target.stream, target.name)
    return words("stream", "edit", getattr(target, "name", ""))


def _publish_command(target: Target) -> str:
    subject = target.subjects[0] if isinstance(target, Stream) and target.subjects else "SUBJECT"
    return words("publish", subject, "BODY", "--jetstream")


ACTIONS: tuple[Action, ...] = (
    Action("step-down", "d", "Step-down", _leads, groups.plan_step_down, groups.step_down_command),
    Action("pause", "P", "Pause", _is_consumer, consumers.plan_pause, consumers.pause_command),
    Action("purge", "x", "Purge", _is_open, streams.plan_purge, streams.purge_command),
    Action(
        "peer-remove", "R", "Peer-rm", _has_peers, groups.plan_peer_remove, groups.remove_command
    ),
    Action("edit", "e", "Edit", _is_asset, None, _edit_command),
    Action("publish", "p", "Publish", _is_open, None, _publish_command, shown=False),
    Action(
        "replicas",
        "n",
        "Replicas",
        _is_stream,
        streams.plan_scale,
        streams.scale_command,
        shown=False,
    ),
    Action("unpin", "U", "Unpin", _is_pinned, consumers.plan_unpin, consumers.unpin_command),
    Action(
        "backup",
        "b",
        "Backup",
        _is_stream,
        backups.plan_backup,
        backups.backup_command,
        shown=False,
        local=True,
    ),
    Action("seal", "Z", "Seal", _is_open, streams.plan_seal, streams.seal_command, shown=False),
    Action(
        "delete", "D", "Delete", _is_asset, streams.plan_delete, streams.delete_command, shown=False
    ),
)
_BY_NAME = {action.name: action for action in ACTIONS}
