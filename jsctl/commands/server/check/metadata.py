"""Thresholds of checks: flags, and what an asset's own metadata says where none was given."""

from collections.abc import Mapping
from dataclasses import dataclass

from jsctl.api.times import SECOND_NS, parse_duration
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

PREFIX = "io.nats.monitor."


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A flag beats the metadata key of the same name; what nobody set is 0."""

    call: Call
    metadata: Mapping[str, str]

    def count(self, name: str) -> int:
        """A whole number; negative ones switch a check off."""
        text = self._text(name)
        try:
            return max(0, int(text)) if text else 0
        except ValueError:
            raise _unusable(name, text) from None

    def seconds(self, name: str) -> float:
        """A length of time."""
        text = self._text(name)
        try:
            return max(0, parse_duration(text)) / SECOND_NS if text else 0.0
        except ValueError:
            raise _unusable(name, text) from None

    def flag(self, name: str) -> bool:
        """Whether something is asked for."""
        text = self.metadata.get(PREFIX + name, "").lower()
        return self.call.flag(name) or text in ("1", "t", "true")

    def _text(self, name: str) -> str:
        if self.call.given(name):
            return self.call.text(name)
        return self.metadata.get(PREFIX + name, "")


def _unusable(name: str, text: str) -> UsageError:
    return UsageError(f"metadata {PREFIX}{name} cannot be used: {text!r}")
