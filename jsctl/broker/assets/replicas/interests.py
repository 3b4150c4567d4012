"""For which consumers a message is, where a stream keeps what somebody needs.

With a thousand consumers of a subject each nobody asks all of them about each message.
"""

from collections import ChainMap
from collections.abc import Iterator, MutableMapping, Sequence

from jsctl.broker.assets.replicas.replica_context import ConsumerWatcher
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.subject.matching import Filters
from jsctl.broker.subject.sublist import Sublist


class Watchers(MutableMapping[str, ConsumerWatcher]):
    """Consumers by name, which notes whose names come and go: each change is one of these two.

    `touched`: names about which something changed; shared by those that are looked at together.
    """

    __slots__ = ("_by_name", "touched")

    def __init__(self, touched: set[str]) -> None:
        self._by_name: dict[str, ConsumerWatcher] = {}
        self.touched = touched

    def __setitem__(self, name: str, watcher: ConsumerWatcher) -> None:
        self.touched.add(name)
        self._by_name[name] = watcher

    def __delitem__(self, name: str) -> None:
        self.touched.add(name)
        del self._by_name[name]

    def __getitem__(self, name: str) -> ConsumerWatcher:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


def concerns_of(consumer: Consumer, coming: Filters | None) -> Sequence[bytes] | None:
    """Patterns of what is for a consumer now or with the filters that come, or is still needed;
    None: it is to be asked. Dead letters may be of other subjects."""
    if consumer.dead_letters_to or consumer.state.dead:
        return None
    some = [consumer.filters] if coming is None else [consumer.filters, coming]
    if any(one.is_all or one.has_long for one in some):
        return None
    return [pattern for one in some for pattern in one.patterns]


class _WatcherEntry:
    """A consumer; one object for all of its patterns."""

    __slots__ = ("patterns", "watcher")

    queue = b""

    def __init__(self, watcher: ConsumerWatcher, patterns: Sequence[bytes] | None) -> None:
        self.watcher = watcher
        self.patterns = patterns
        """None: it is asked about every subject."""


def _found(
    plain: tuple[_WatcherEntry, ...], groups: tuple[tuple[_WatcherEntry, ...], ...]
) -> tuple[ConsumerWatcher, ...]:
    return tuple([entry.watcher for entry in dict.fromkeys(plain)])


class Interests:
    """Of a stream that this server leads."""

    __slots__ = ("_always", "_index", "_known", "_touched", "watchers")

    def __init__(self, maps: Sequence[Watchers], touched: set[str]) -> None:
        self.watchers = ChainMap[str, ConsumerWatcher](*maps)
        self._touched = touched
        touched.update(self.watchers)
        self._known: dict[str, _WatcherEntry] = {}
        self._always: dict[str, ConsumerWatcher] = {}
        """Who is asked about everything."""
        self._index: Sublist[_WatcherEntry, tuple[ConsumerWatcher, ...]] | None = None
        """The others, if there are any."""

    @property
    def all_take_all(self) -> bool:
        """Whether every message is for every consumer."""
        self._follow()
        return len(self._always) == len(self._known) and all(
            watcher.takes_all for watcher in self._always.values()
        )

    def about(self, subject: bytes) -> list[ConsumerWatcher]:
        """Who is to be asked about a message: all whom it may concern, and some others."""
        self._follow()
        some = () if self._index is None else self._index.match(subject)
        return [*self._always.values(), *some]

    def _follow(self) -> None:
        for name in sorted(self._touched):
            self._forget(name)
            watcher = self.watchers.get(name)
            if watcher is not None:
                self._take(name, _WatcherEntry(watcher, watcher.concerns))
        self._touched.clear()

    def _take(self, name: str, entry: _WatcherEntry) -> None:
        self._known[name] = entry
        if entry.patterns is None:
            self._always[name] = entry.watcher
            return
        if self._index is None:
            self._index = Sublist(_found)
        for pattern in entry.patterns:
            self._index.insert(pattern, entry)

    def _forget(self, name: str) -> None:
        entry = self._known.pop(name, None)
        if entry is not None and entry.patterns is not None and self._index is not None:
            for pattern in entry.patterns:
                self._index.remove(pattern, entry)
        self._always.pop(name, None)
