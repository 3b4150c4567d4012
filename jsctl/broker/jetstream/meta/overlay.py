"""What is in flight of the meta log, laid over the applied state: assets as they will be."""

from collections.abc import Iterable, Iterator

from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.meta.entries import Assignment, Key
from jsctl.broker.jetstream.meta.listening import ListenedSubjects


class Overlay:
    """Assets by key, None for those that will be gone; an asset stays until all proposals that
    change it have landed."""

    __slots__ = ("_assets", "_waiting", "listening")

    def __init__(self) -> None:
        self._assets: dict[Key, Assignment | None] = {}
        self._waiting: dict[Key, int] = {}
        """How many proposals change each."""
        self.listening = ListenedSubjects()
        """What the streams in here will listen on."""

    def __contains__(self, key: Key) -> bool:
        return key in self._assets

    def __getitem__(self, key: Key) -> Assignment | None:
        return self._assets[key]

    def items(self) -> Iterable[tuple[Key, Assignment | None]]:
        """All of them."""
        return self._assets.items()

    def streams(self, account: str) -> dict[str, StreamAssignment | None]:
        """An account's streams that are different."""
        return {
            key[1]: made if isinstance(made, StreamAssignment) else None
            for key, made in self._assets.items()
            if key[0] == account and not key[2]
        }

    def consumers(self, account: str, stream: str) -> Iterator[tuple[str, Assignment | None]]:
        """A stream's consumers that are different."""
        for key, made in self._assets.items():
            if key[2] and key[:2] == (account, stream):
                yield key[2], made

    def proposed(self, key: Key, made: Assignment | None) -> None:
        """An asset will be so."""
        self._listen(key, made)
        self._assets[key] = made
        self._waiting[key] = self._waiting.get(key, 0) + 1

    def landed(self, keys: Iterable[Key]) -> None:
        """A proposal that changes these is applied."""
        for key in keys:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                self._listen(key, None)
                del self._waiting[key], self._assets[key]

    def _listen(self, key: Key, after: Assignment | None) -> None:
        before = self._assets.get(key)
        self.listening.change(
            before if isinstance(before, StreamAssignment) else None,
            after if isinstance(after, StreamAssignment) else None,
        )
