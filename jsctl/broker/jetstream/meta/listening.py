"""What the streams of each account listen on: two streams never take the same message."""

from collections.abc import Collection

from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.subject.patterns import PatternSet

_NOTHING = PatternSet()


class ListenedSubjects:
    """Subjects of streams by account, owned by the streams' names.

    Each change costs what it changes; a question costs what is asked, whatever there is.
    """

    __slots__ = ("_accounts",)

    def __init__(self) -> None:
        self._accounts: dict[str, PatternSet] = {}

    def change(self, before: StreamAssignment | None, after: StreamAssignment | None) -> None:
        """A stream is made, changed or dropped."""
        if before and after and before.config.subjects == after.config.subjects:
            return
        if before is not None:
            known = self._accounts[before.account]
            for subject in _subjects(before):
                known.remove(subject, before.name)
        if after is not None:
            known = self._accounts.setdefault(after.account, PatternSet())
            for subject in _subjects(after):
                known.insert(subject, after.name)

    def is_taken(self, account: str, subjects: PatternSet, ignoring: Collection[str]) -> bool:
        """Whether a stream, but for those to be ignored, listens on some of these. Raises
        Tangled."""
        known = self._accounts.get(account, _NOTHING)
        return subjects.meets(known, ignoring) is not None

    def on(self, account: str, pattern: bytes) -> set[str]:
        """Names of the streams that listen on something which the pattern matches."""
        return self._accounts.get(account, _NOTHING).owners_meeting(pattern)


def _subjects(made: StreamAssignment | None) -> list[bytes]:
    return [] if made is None else [subject.encode() for subject in made.config.subjects]
