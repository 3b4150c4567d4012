"""What buckets of keys and buckets of objects have in common."""

from typing import TYPE_CHECKING

from jsctl.api.cluster import Placement
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NeedsConfirmation, NotFound

if TYPE_CHECKING:
    from jsctl.client.manager import Manager


async def pick_bucket(call: Call, manager: "Manager", prefix: str, kind: str) -> str:
    """A bucket from a list; `prefix` is that of their streams. Raises NotFound without one."""
    names = [name for name in await manager.stream_names() if name.startswith(prefix)]
    if not names:
        raise NotFound(f"no {kind} buckets found")
    if not call.prompts.possible:
        raise NeedsConfirmation("cannot prompt for user input without a terminal")
    return call.prompts.choose("Select a Bucket", [name.removeprefix(prefix) for name in names])


def placement_of(call: Call, before: Placement | None) -> Placement | None:
    """What `--cluster` and `--tags` say; what they do not name stays."""
    cluster, given = call.text("cluster"), call.texts("tags")
    if not (cluster or given):
        return before
    before = before or Placement()
    tags = tuple(filter(None, given)) if given else before.tags
    return Placement(cluster=cluster or before.cluster, tags=tags)
