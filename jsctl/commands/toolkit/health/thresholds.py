"""Thresholds of checks: flags, and what an asset's own metadata says where none was given."""

from collections.abc import Mapping

from jsctl.api.times import SECOND_NS, parse_duration
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass
from jsctl.errors import UsageError

PREFIX = "io.nats.monitor."
_YES = ("1", "t", "true")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A flag beats the metadata key of the same name; what nobody set is 0."""

    call: Call | None
    """None where nobody gave flags."""

    metadata: Mapping[str, str]

    @property
    def wanted(self) -> bool:
        """Whether the metadata asks for a check."""
        return self._word("enabled") in _YES

    def count(self, name: str) -> int:
        """A whole number; negative ones switch a check off."""
        return max(0, self.given_count(name))

    def given_count(self, name: str) -> int:
        """The same as it was given."""
        text = self._text(name)
        try:
            return int(text) if text else 0
        except ValueError:
            raise _unusable(name, text) from None

    def seconds(self, name: str) -> float:
        """A length of time; negative ones switch a check off."""
        return max(0.0, self.given_seconds(name))

    def given_seconds(self, name: str) -> float:
        """The same as it was given."""
        text = self._text(name)
        try:
            return parse_duration(text) / SECOND_NS if text else 0.0
        except ValueError:
            raise _unusable(name, text) from None

    def flag(self, name: str) -> bool:
        """Whether something is asked for."""
        return (self.call is not None and self.call.flag(name)) or self._word(name) in _YES

    def _word(self, name: str) -> str:
        return self.metadata.get(PREFIX + name, "").lower()

    def _text(self, name: str) -> str:
        if self.call is not None and self.call.given(name):
            return self.call.text(name)
        return self.metadata.get(PREFIX + name, "")


def _unusable(name: str, text: str) -> UsageError:
    return UsageError(f"metadata {PREFIX}{name} cannot be used: {text!r}")
