"""What is in flight of the meta log, laid over the applied state: assets as they will be."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.entries import Assignment, Key
from jsctl.broker.jetstream.meta.listening import ListenedSubjects

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Overlay:
    """Assets by key, None for those that will be gone; an asset stays until all proposals that
    change it have landed."""

    __slots__ = ("_assets", "_consumers", "_streams", "_waiting", "listening")

    def __init__(self) -> None:
        self._assets: dict[Key, Assignment | None] = {}
        self._streams: dict[str, dict[str, StreamAssignment | None]] = {}
        """The same of streams alone, by account: each request asks for its own account's."""
        self._consumers: dict[tuple[str, str], dict[str, Assignment | None]] = {}
        """The same of consumers, by account and stream."""
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

    def streams(self, account: str) -> Mapping[str, StreamAssignment | None]:
        """An account's streams that are different."""
        return self._streams.get(account, _NOTHING)

    def consumers(self, account: str, stream: str) -> Mapping[str, Assignment | None]:
        """A stream's consumers that are different."""
        return self._consumers.get((account, stream), _NOTHING)

    def touched(self, account: str) -> set[str]:
        """Names of an account's streams that are different, or have consumers that are."""
        of_consumers = {stream for owner, stream in self._consumers if owner == account}
        return of_consumers.union(self.streams(account))

    def proposed(self, key: Key, made: Assignment | None) -> None:
        """An asset will be so."""
        self._listen(key, made)
        self._assets[key] = made
        self._file(key, made)
        self._waiting[key] = self._waiting.get(key, 0) + 1

    def landed(self, keys: Iterable[Key]) -> None:
        """A proposal that changes these is applied."""
        for key in keys:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                self._listen(key, None)
                del self._waiting[key], self._assets[key]
                self._take_out(key)

    def _file(self, key: Key, made: Assignment | None) -> None:
        account, stream, consumer = key
        if consumer:
            self._consumers.setdefault((account, stream), {})[consumer] = made
        else:
            assert not isinstance(made, ConsumerAssignment), "the key of a stream"
            self._streams.setdefault(account, {})[stream] = made

    def _take_out(self, key: Key) -> None:
        account, stream, consumer = key
        if consumer:
            del self._consumers[account, stream][consumer]
            if not self._consumers[account, stream]:
                del self._consumers[account, stream]
        else:
            del self._streams[account][stream]
            if not self._streams[account]:
                del self._streams[account]

    def _listen(self, key: Key, after: Assignment | None) -> None:
        before = self._assets.get(key)
        self.listening.change(
            before if isinstance(before, StreamAssignment) else None,
            after if isinstance(after, StreamAssignment) else None,
        )
