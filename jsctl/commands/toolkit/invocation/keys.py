"""Keys that are pressed while something is watched on a terminal, one by one and without Enter."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from jsctl.render.table import readable

LEAVE, ENTER, BACKSPACE = "q", "\r\n", "\x08\x7f"
TYPED_MAX = 64
"""No answer is longer."""
READ_BYTES = 1024


class Keys:
    """What keys do: `acts` at once, `answers` with a text that is typed behind them, up to Enter.

    A text that does not fit raises ValueError, which is told until the next key. `q` leaves.
    """

    def __init__(
        self,
        help_text: str,
        acts: Mapping[str, Callable[[], None]],
        answers: Mapping[str, tuple[str, Callable[[str], None]]],
    ) -> None:
        self._help, self._acts, self._answers = help_text, acts, answers
        self._asked = self._typed = self._problem = ""
        self._pressed = asyncio.Event()
        self.left = False

    @property
    def line(self) -> str:
        """What the keys do, or what is being typed."""
        if self._asked:
            return f"{self._answers[self._asked][0]}: {self._typed}"
        return self._problem or self._help

    async def pause(self, seconds: float) -> None:
        """Until a key is pressed, but no longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._pressed.wait()
        self._pressed.clear()

    @contextmanager
    def read(self) -> Iterator[None]:
        """Keys count while the body runs, if there is a terminal to press them on."""
        if not sys.stdin.isatty() or not _in_front(descriptor := sys.stdin.fileno()):
            yield
            return
        before = termios.tcgetattr(descriptor)
        loop = asyncio.get_running_loop()
        tty.setcbreak(descriptor, termios.TCSANOW)
        loop.add_reader(descriptor, self._take, descriptor)
        try:
            yield
        finally:
            loop.remove_reader(descriptor)
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    def _take(self, descriptor: int) -> None:
        try:
            found = os.read(descriptor, READ_BYTES)
        except OSError:
            found = b""
        if not found:  # The terminal is gone.
            self.left = True
            asyncio.get_running_loop().remove_reader(descriptor)
        for key in found.decode("utf-8", "replace"):
            self.press(key)
        self._pressed.set()

    def press(self, key: str) -> None:
        """One key."""
        self._problem = ""
        if self._asked:
            self._type(key)
        elif key == LEAVE:
            self.left = True
        elif key in self._answers:
            self._asked = key
        elif key in self._acts:
            self._acts[key]()

    def _type(self, key: str) -> None:
        if key in BACKSPACE:
            self._typed = self._typed[:-1]
        elif key not in ENTER:
            self._typed = (self._typed + readable(key))[:TYPED_MAX]
        else:
            answer = self._answers[self._asked][1]
            try:
                answer(self._typed)
            except ValueError as error:
                self._problem = str(error)
            self._asked = self._typed = ""


def _in_front(descriptor: int) -> bool:
    """Whether this process may change the terminal: one in the background would be stopped."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return True  # It is not the terminal that this process hangs on.
