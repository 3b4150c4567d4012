"""Which meta group this server belongs to, on disk before it takes part in it."""

import json
from typing import Any

from jsctl.api.jsontext import parse_object
from jsctl.api.strict import DecodeError
from jsctl.broker.errors import Damaged
from jsctl.broker.peers.items import Founding
from jsctl.broker.ports import Disk
from jsctl.broker.replication import state_file
from jsctl.broker.replication.group import GroupKind
from jsctl.broker.replication.state_file import GroupState, WriteState

META_GROUP = GroupKind.META.value
"""The name of the group."""
META_DIRECTORY = "meta"
"""Where a replica of its state lies."""
DIRECTORY = "founding"
EVICTED = "evicted"


def read_founding(disk: Disk) -> Founding | None:
    """What was written; None on a server that belongs to none yet. Raises Damaged."""
    loaded = state_file.load(disk, DIRECTORY)
    if loaded.state is None:
        if loaded.damage:
            raise Damaged(
                "the record of this server's meta group does not check, in no copy; restore it,"
                " or empty the store to join again",
                path=DIRECTORY,
            )
        return None
    try:
        return _founding(parse_object(loaded.state.snapshot))
    except (DecodeError, KeyError, TypeError) as error:
        text = f"the record of this server's meta group is of no use: {error}"
        raise Damaged(text, path=DIRECTORY) from error


def _founding(document: dict[str, Any]) -> Founding:
    return Founding(document["meta_id"], tuple(document["members"]), tuple(document["lives"]))


def write_founding(disk: Disk, founding: Founding) -> None:
    """Write both copies, durable when this returns. Raises DiskError."""
    document: dict[str, object] = {"meta_id": founding.meta_id, "members": list(founding.members)}
    document["lives"] = list(founding.lives)
    snapshot = json.dumps(document).encode()
    for generation in (1, 2):
        WriteState(disk, DIRECTORY, GroupState(generation, 0, 0, b"", snapshot), ()).run()


def is_evicted(disk: Disk) -> bool:
    """Whether an operator removed this server, with this store, from its cluster."""
    return disk.exists(EVICTED)


def write_evicted(disk: Disk) -> None:
    """Remember that, durable when this returns: the store does not take part again."""
    disk.make_directory(EVICTED)
    WriteState(disk, EVICTED, GroupState(1, 0, 0, b"", b""), ()).run()
