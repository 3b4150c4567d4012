"""Which streams of each account are mirrors of which."""

from collections.abc import Mapping

from jsctl.broker.jetstream.meta.assignments import StreamAssignment


class Mirrors:
    """Names of the applied mirrors by account and origin; a change costs what it changes."""

    __slots__ = ("_by_origin",)

    def __init__(self) -> None:
        self._by_origin: dict[tuple[str, str], set[str]] = {}

    def change(self, before: StreamAssignment | None, after: StreamAssignment | None) -> None:
        """A stream is made, changed or dropped."""
        if before is not None and before.config.mirror is not None:
            key = before.account, before.config.mirror.name
            known = self._by_origin[key]
            known.discard(before.name)
            if not known:
                del self._by_origin[key]
        if after is not None and after.config.mirror is not None:
            key = after.account, after.config.mirror.name
            self._by_origin.setdefault(key, set()).add(after.name)

    def of(
        self, account: str, origin: str, changed: Mapping[str, StreamAssignment | None]
    ) -> list[str]:
        """Names of a stream's mirrors, sorted; `changed` are streams that will be different."""
        found = self._by_origin.get((account, origin), set()).difference(changed)
        for name, made in changed.items():
            mirror = None if made is None else made.config.mirror
            if mirror is not None and mirror.name == origin:
                found.add(name)
        return sorted(found)
