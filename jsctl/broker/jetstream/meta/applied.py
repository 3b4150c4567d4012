"""What the meta group has decided: its state as applied, without what is in flight."""

from collections import Counter
from collections.abc import Iterable

from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.entries import Assignment, Key, MetaServer, key_of
from jsctl.broker.jetstream.meta.listening import ListenedSubjects
from jsctl.broker.jetstream.meta.loads import Loads
from jsctl.broker.jetstream.meta.mirrors import Mirrors


class Applied:
    """Streams and consumers by account and stream, servers by peer."""

    __slots__ = ("consumers", "counts", "listening", "loads", "mirrors", "servers", "streams")

    def __init__(self, servers: Iterable[MetaServer] = ()) -> None:
        self.listening = ListenedSubjects()
        self.loads = Loads()
        self.mirrors = Mirrors()
        self.streams: dict[str, dict[str, StreamAssignment]] = {}
        self.consumers: dict[tuple[str, str], dict[str, ConsumerAssignment]] = {}
        self.counts: Counter[str] = Counter()
        """Consumers of each account."""
        self.servers = {server.peer: server for server in servers}

    def get(self, key: Key) -> Assignment | None:
        """An asset, or None."""
        account, stream, consumer = key
        if consumer:
            return self.consumers.get((account, stream), {}).get(consumer)
        return self.streams.get(account, {}).get(stream)

    def put(self, made: Assignment) -> None:
        """It is new, or changed."""
        self.loads.change(self.get(key_of(made)), made)
        if isinstance(made, StreamAssignment):
            streams = self.streams.setdefault(made.account, {})
            self.listening.change(streams.get(made.name), made)
            self.mirrors.change(streams.get(made.name), made)
            streams[made.name] = made
        else:
            consumers = self.consumers.setdefault((made.account, made.stream), {})
            self.counts[made.account] += made.name not in consumers
            consumers[made.name] = made

    def drop(self, key: Key) -> None:
        """It is gone, a stream with its consumers."""
        account, stream, consumer = key
        if consumer:
            ended = self.consumers.get((account, stream), {}).pop(consumer, None)
            self.counts[account] -= ended is not None
            self.loads.change(ended, None)
            return
        gone = self.streams.get(account, {}).pop(stream, None)
        self.listening.change(gone, None)
        self.mirrors.change(gone, None)
        consumers = self.consumers.pop((account, stream), {})
        self.counts[account] -= len(consumers)
        for made in (gone, *consumers.values()):
            self.loads.change(made, None)

    def assets(self) -> dict[Key, Assignment]:
        """Streams before their consumers."""
        found: dict[Key, Assignment] = {}
        for streams in self.streams.values():
            found.update((key_of(made), made) for made in streams.values())
        for consumers in self.consumers.values():
            found.update((key_of(made), made) for made in consumers.values())
        return found
