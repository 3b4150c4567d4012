"""Copying a stream into a directory of this machine."""

import re
from datetime import UTC, datetime
from pathlib import Path

from jsctl.api.times import SECOND_NS
from jsctl.client.backup import backup_stream, refusal
from jsctl.dashboard.actions.plans import Effect, Plan, Target, Tier, words
from jsctl.dashboard.connection.link import Link
from jsctl.dashboard.model.snapshot import Snapshot, Stream
from jsctl.render.humanize import number, size


def _directory(name: str, now_ns: int) -> str:
    """A name for a directory; what a server calls its stream chooses no other place."""
    when = datetime.fromtimestamp(now_ns // SECOND_NS, UTC)
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)}-{when:%Y%m%d-%H%M%S}"


def plan_backup(target: Target, snapshot: Snapshot) -> Plan:
    """A copy with messages and consumers."""
    assert isinstance(target, Stream)
    stream = target
    usual = _directory(stream.name, snapshot.taken_ns)

    def effects(choice: str) -> tuple[Effect, ...]:
        return (
            Effect("messages", number(stream.messages), f"{size(stream.bytes)} uncompressed"),
            Effect("consumers", number(stream.consumers), "with their positions"),
            Effect("into", str(Path(choice).expanduser().absolute())),
        )

    async def run(link: Link, choice: str) -> str:
        directory = Path(choice).expanduser()
        done = await backup_stream(link.manager, stream.name, directory)
        return f"{size(done.bytes)} in {done.seconds:.1f} s into {directory}"

    return Plan(
        title="Back up stream",
        tier=Tier.YES_NO,
        headline=f"Copy {stream.name} into a directory of this machine",
        button="Back up",
        run=run,
        command=lambda choice: backup_command(stream, choice),
        effects=effects,
        choices=(usual,),
        free="another directory, new or empty",
        check=lambda choice: refusal(Path(choice).expanduser()),
    )


def backup_command(target: Target, directory: str = "DIRECTORY") -> str:
    """The command line of it."""
    assert isinstance(target, Stream)
    return words("stream", "backup", target.name, directory)
