"""`--watch`: a report again and again, on one connection, until it is interrupted."""

import asyncio
import io
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from jsctl.api.errors import ApiError
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.keys import Keys
from jsctl.errors import JsctlError, UsageError

_OTHER_SCREEN, _OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_AT_ONCE, _SHOWN = "\x1b[?2026h\x1b[H", "\x1b[J\x1b[?2026l"
_REST_OF_LINE = "\x1b[K"

_BETWEEN = {"yaml": "---\n", "jsonl": ""}
"""What stands between two rounds off a terminal, where that is no empty line."""

Report = Callable[[Call], Awaitable[int | None]]


async def watched(call: Call, report: Report) -> int | None:
    """The report once, or with `--watch` until Ctrl-C; the first round may fail, later ones not.

    On a terminal it fills the screen and what was shown last stays; elsewhere a blank line stands
    between the rounds, or what the format has for that.
    """
    seconds = call.integer("watch")
    if seconds > 0 and call.text("archive"):
        raise UsageError("--watch is not supported when using --archive")
    if seconds <= 0:
        return await report(call)
    return await repeated(call, report, seconds)


async def repeated(
    call: Call, report: Report, seconds: int, *, at_once: bool = True, keys: Keys | None = None
) -> int:
    """The report every so many seconds until Ctrl-C; the first one now, or `at_once` not.

    On a terminal a key of `keys` shows it at once, or leaves.
    """
    screen = _Screen(call, seconds, keys)
    try:
        async with call.one_connection():
            if at_once:
                await screen.show(report, patient=False)
            with keys.read() if keys and screen.terminal else nullcontext():
                while True:
                    await (keys.pause(seconds) if keys else asyncio.sleep(seconds))
                    if keys and keys.left:
                        break
                    await screen.show(report, patient=screen.rounds > 0)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
    finally:
        screen.leave()
    return 0


class _Screen:
    """What people look at."""

    def __init__(self, call: Call, seconds: int, keys: Keys | None) -> None:
        self._call = call
        self._seconds = seconds
        self._keys = keys
        self._out = call.output.stdout
        self.terminal = self._out.isatty() and not call.output.machine
        self._last = ""
        self.rounds = 0

    async def show(self, report: Report, *, patient: bool) -> None:
        """One round; `patient` tells errors and goes on."""
        held = io.StringIO()
        self._call.output.redirect(held)
        try:
            await report(self._call)
        except (ApiError, JsctlError) as error:
            if not patient:
                raise
            held.write(f"{error}\n")
        finally:
            self._call.output.redirect(self._out)
        self._draw(held.getvalue())

    def _draw(self, text: str) -> None:
        if not self.terminal:
            between = _BETWEEN.get(self._call.output.form, "\n")
            self._out.write(between + text if self.rounds else text)
        else:
            now = time.strftime("%H:%M:%S")
            line = self._keys.line if self._keys else "Ctrl-C leaves"
            head = f"every {self._seconds}s · {now} · {line}\n\n"
            lines = (head + text).splitlines()[: self._call.output.height or None]
            body = "\r\n".join(line + _REST_OF_LINE for line in lines)
            start = "" if self.rounds else _OTHER_SCREEN
            self._out.write(f"{start}{_AT_ONCE}{body}{_SHOWN}")
        self._out.flush()
        self._last = text
        self.rounds += 1

    def leave(self) -> None:
        """Back to the screen as it was, with the last report on it."""
        if self.terminal and self.rounds:
            self._out.write(_OWN_SCREEN + self._last)
            self._out.flush()
