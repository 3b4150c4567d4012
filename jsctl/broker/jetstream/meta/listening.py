"""What the streams of each account listen on: two streams never take the same message."""

from collections.abc import Mapping

from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.subject.patterns import PatternSet

Changed = Mapping[str, StreamAssignment | None]
"""Streams by name as they will be, None for those that will be gone."""
_NOTHING = PatternSet()


class ListenedSubjects:
    """Subjects of the applied streams by account, owned by the streams' names.

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

    def is_taken(self, account: str, subjects: PatternSet, name: str, changed: Changed) -> bool:
        """Whether a stream other than `name` listens on some of these. Raises Tangled."""
        known = self._accounts.get(account, _NOTHING)
        if subjects.meets(known, ignoring={name, *changed}) is not None:
            return True
        return any(
            subjects.meets(PatternSet(_subjects(made))) is not None
            for other, made in changed.items()
            if other != name
        )

    def on(self, account: str, pattern: bytes, changed: Changed) -> set[str]:
        """Names of the streams that listen on something which the pattern matches."""
        known = self._accounts.get(account, _NOTHING)
        found = known.owners_meeting(pattern).difference(changed)
        for name, made in changed.items():
            if PatternSet(_subjects(made)).owners_meeting(pattern):
                found.add(name)
        return found


def _subjects(made: StreamAssignment | None) -> list[bytes]:
    return [] if made is None else [subject.encode() for subject in made.config.subjects]
