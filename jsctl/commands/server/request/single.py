"""`server request kick` and `profile`: what is done to, or taken from, servers."""

import base64
import binascii
import os
import time
from dataclasses import replace
from pathlib import Path

from jsctl.api.server import EventFilterOptions
from jsctl.api.times import SECOND_NS
from jsctl.client.system import NatsSystem, SystemReply
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.asking import ask, request_filter
from jsctl.errors import NotFound, UsageError

GRACE_NS = 2 * SECOND_NS
"""Beyond the time that a profile of the processor takes."""


async def kick(call: Call) -> None:
    """Closes a client's connection."""
    text = call.text("client")
    if not is_count(text):
        raise UsageError(f"expected a client ID, got '{text}'")
    async with call.client() as client:
        system = NatsSystem(client, call.settings)
        replies = await system.gather("KICK", {"cid": int(text)}, server_id=call.text("server"))
    if not replies:
        raise NotFound("no responses received")
    for reply in replies:
        call.output.json(reply.document)


async def profile(call: Call) -> int:
    """A profile of each server, into files; 1 when there is none."""
    name, directory = call.text("profile"), Path(call.text("dir"))
    options: dict[str, object] = {"name": name, "debug": call.integer("level")}
    settings = call.settings
    if name == "cpu":
        options["duration"] = settings.timeout_ns
        settings = replace(settings, timeout_ns=settings.timeout_ns + GRACE_NS)
    where = request_filter(call)
    if call.text("archive"):
        replies = _captured(call, name, where)
    else:
        async with call.client() as client:
            system = NatsSystem(client, settings)
            replies = await ask(system, "PROFILEZ", options, where=where)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    written = [_written(call, reply, directory, f"{name}-{stamp}-") for reply in replies]
    return 0 if any(written) else 1


def _captured(call: Call, name: str, where: EventFilterOptions) -> list[SystemReply]:
    from jsctl.commands.toolkit.archives.source import open_archive

    level, place = call.integer("level"), Path(call.text("archive")).expanduser()
    for flag in ("host", "tags"):
        if call.given(flag):
            raise UsageError(f"unsupported option for archive profilez: {flag}")
    with open_archive(place) as archive:
        found = archive.profiles(name, level, where)
    if not found:
        call.output.note(
            f'no captured profiles matched "{name}" at level {level} in {place}; '
            "an audit has goroutine at the levels 1 and 2, and the others at 0"
        )
    return found


def _written(call: Call, reply: SystemReply, directory: Path, prefix: str) -> bool:
    """Whether there is a file now; what went wrong is told."""
    server, problem = reply.server.name, str(reply.data.get("error") or "")
    try:
        content = base64.b64decode(str(reply.data.get("profile") or ""), validate=True)
        if not problem and not content:
            problem = "no profile received"
        if not problem:
            # Servers choose their names, people the directory.
            target = directory / (prefix + server.replace(os.sep, "_"))
            target.touch(mode=0o600)
            target.write_bytes(content)
            call.output.print(f'Server "{server}" profile written: {target}')
    except binascii.Error:
        problem = "the profile is not base64"
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        call.output.note(f'Server "{server}" error: {problem}')
    return not problem
