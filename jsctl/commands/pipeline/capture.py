"""`pipeline capture`."""

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.finishing import asked_to_stop
from jsctl.render.humanize import counted, number
from jsctl.spark.pipeline.capture import Capture, Counts
from jsctl.spark.pipeline.capture import capture as keep


async def capture(call: Call) -> None:
    """Stores telemetry until it is stopped; a second time it is broken off, as it may wait long."""
    what = Capture(
        into=call.text("into"),
        streams=call.texts("stream"),
        every_ns=call.duration("every"),
        for_ns=call.duration("for"),
        max_age_ns=call.duration("max-age"),
        replicas=call.integer("replicas", 1),
    )
    terminal = call.output.stderr.isatty()

    def told(counts: Counts) -> None:
        if terminal:
            call.output.stderr.write(f"\r\x1b[K{_line(counts)}")
            call.output.stderr.flush()

    async with call.manager() as manager:
        with asked_to_stop(what.stopping.set):
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
