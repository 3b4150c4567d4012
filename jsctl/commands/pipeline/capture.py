"""`pipeline capture`."""

import asyncio
import signal

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.humanize import counted, number
from jsctl.spark.pipeline.capture import Capture, Counts
from jsctl.spark.pipeline.capture import capture as keep


async def capture(call: Call) -> None:
    """Stores telemetry until it is stopped."""
    what = Capture(
        into=call.text("into"),
        streams=call.texts("stream"),
        every_ns=call.duration("every"),
        for_ns=call.duration("for"),
        max_age_ns=call.duration("max-age"),
        replicas=call.integer("replicas", 1),
    )
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def asked() -> None:
        """The first time for an end, then for one at once: what waits may wait for long."""
        if what.stopping.is_set():
            task.cancel()
        what.stopping.set()

    for number_ in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number_, asked)
    terminal = call.output.stderr.isatty()

    def told(counts: Counts) -> None:
        if terminal:
            call.output.stderr.write(f"\r\x1b[K{_line(counts)}")
            call.output.stderr.flush()

    async with call.manager() as manager:
        counts = await keep(manager, what, told)
    if terminal:
        call.output.stderr.write("\r\x1b[K")
    call.output.print(f"Stored in {what.into}: {_line(counts)}")


def _line(counts: Counts) -> str:
    advisories = counted(counts.advisories, "advisory", "advisories")
    text = f"{counted(counts.states, 'state')}, {advisories}"
    for value, word in ((counts.dropped, "dropped"), (counts.failed, "failed")):
        text += f", {number(value)} {word}" if value else ""
    return text
