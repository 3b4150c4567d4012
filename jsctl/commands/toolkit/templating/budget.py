"""What templates of strangers may use, all runs together: steps, and characters of output.

It counts and knows no clock, so that the same template ends at the same place everywhere. A step
is a node that is run, an element that is looked at, or `STRETCH` characters of a text; with that,
what is kept in memory is bounded, too.
"""

from collections.abc import Mapping

from jsctl.errors import JsctlError

STRETCH = 256


class Budget:
    """What is left of it. Each method raises JsctlError when that is nothing."""

    def __init__(self, steps: int, characters: int) -> None:
        self._steps = self._steps_left = steps
        self._characters = self._characters_left = characters

    def step(self, count: int = 1) -> None:
        """Work that is about to be done."""
        self._steps_left -= count
        if self._steps_left < 0:
            raise JsctlError(f"the template takes more than {self._steps} steps")

    def write(self, count: int) -> None:
        """Characters of output."""
        self._characters_left -= count
        if self._characters_left < 0:
            raise JsctlError(f"the template writes more than {self._characters} characters")

    def look(self, value: object) -> None:
        """A step for each element of a value, however often it is in there."""
        waiting = [value]
        while waiting:
            one = waiting.pop()
            self.step(1 + len(one) // STRETCH if isinstance(one, str) else 1)
            if isinstance(one, Mapping):
                self.step(len(one))
                waiting += one.values()
            elif isinstance(one, list | tuple):
                waiting += one
