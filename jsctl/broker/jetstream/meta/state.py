"""The meta state machine: which servers there are, and which streams and consumers.

The meta leader decides (placement, limits, names) and logs the outcome; applying an entry only
files it. What the leader has proposed but not yet applied is laid over the applied state, so
that two requests of one turn see each other. What applying changed is kept as `MetaChange`s until
the node takes them to build, change or drop groups.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from jsctl.api.jsontext import OWN_BYTES_MAX, parse_object
from jsctl.broker.jetstream.meta.applied import Applied
from jsctl.broker.jetstream.meta.assignments import (
    UNDATED,
    ConsumerAssignment,
    StreamAssignment,
    consumer_from,
    ends_with_process,
    stream_from,
)
from jsctl.broker.jetstream.meta.entries import (
    AssetEntry,
    Assignment,
    Document,
    Key,
    MetaServer,
    assignment_from,
    is_meant,
    key_from,
    key_of,
    restored_from,
    settled_by,
)
from jsctl.broker.jetstream.meta.loads import Loads
from jsctl.broker.jetstream.meta.overlay import Overlay
from jsctl.broker.jetstream.meta.wording import worded
from jsctl.broker.subject.patterns import PatternSet
from jsctl.dataclass import dataclass, replace

_K = TypeVar("_K", str, tuple[str, str])
_V = TypeVar("_V")


class ChangeKind(Enum):
    """What happened to one thing of the meta state."""

    ADDED = "added"
    UPDATED = "updated"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class MetaChange:
    """One applied change: of a stream, of a consumer, or of a server.

    For streams and consumers `before` and `after` are the assignments, None where there is
    none; exactly one of `stream`, `consumer`, `server` names the kind of thing.
    """

    kind: ChangeKind
    account: str = ""
    stream: str = ""
    consumer: str = ""
    before: Assignment | None = None
    after: Assignment | None = None
    server: MetaServer | None = None


class _Proposal(NamedTuple):
    """An entry in flight, read once."""

    entry: bytes
    document: Document
    """Empty, where the assignment was handed on with the entry."""
    made: Assignment | None
    """The assignment, of an entry that is one."""
    keys: tuple[Key, ...]


class Meta:
    """Implements `ports.StateMachine`."""

    def __init__(self) -> None:
        self.applied = 0
        self._state = Applied()
        self._changes: list[MetaChange] = []
        self._in_flight: deque[_Proposal] = deque()
        self._passing: set[bytes] = set()
        self._overlay = Overlay()
        self._loads: Loads | None = None
        """With what is in flight, until something lands: requests of one turn count it once."""

    # What requests see: applied state under what is in flight.

    def stream(self, account: str, name: str) -> StreamAssignment | None:
        """The assignment of a stream, or None."""
        found = self._seen((account, name, ""))
        return found if isinstance(found, StreamAssignment) else None

    def consumer(self, account: str, stream: str, name: str) -> ConsumerAssignment | None:
        """The assignment of a consumer, or None."""
        if self.stream(account, stream) is None:
            return None
        found = self._seen((account, stream, name))
        return found if isinstance(found, ConsumerAssignment) else None

    def streams(self, account: str) -> dict[str, StreamAssignment]:
        """All streams of an account by name, sorted."""
        found = dict(self._state.streams.get(account, {}))
        for name, made in self._overlay.streams(account).items():
            found.pop(name, None)
            if made is not None:
                found[name] = made
        return dict(sorted(found.items()))

    def is_taken(self, account: str, subjects: PatternSet, name: str) -> bool:
        """Whether a stream other than `name` listens on some of these. Raises Tangled."""
        changed = {name, *self._overlay.streams(account)}
        return self._state.listening.is_taken(account, subjects, changed) or (
            self._overlay.listening.is_taken(account, subjects, {name})
        )

    def listening(self, account: str, pattern: bytes) -> set[str]:
        """Names of the streams that listen on something which the pattern matches."""
        known = self._state.listening.on(account, pattern)
        known.difference_update(self._overlay.streams(account))
        return known | self._overlay.listening.on(account, pattern)

    def mirrors(self, account: str, name: str) -> list[str]:
        """Names of the streams that mirror one of that name, sorted."""
        return self._state.mirrors.of(account, name, self._overlay.streams(account))

    def consumers(self, account: str, stream: str) -> dict[str, ConsumerAssignment]:
        """All consumers of a stream by name, sorted."""
        if self.stream(account, stream) is None:
            return {}
        found = dict(self._state.consumers.get((account, stream), {}))
        for name, made in self._overlay.consumers(account, stream).items():
            found.pop(name, None)
            if isinstance(made, ConsumerAssignment):
                found[name] = made
        return dict(sorted(found.items()))

    def applied_consumers(self, account: str, stream: str) -> list[ConsumerAssignment]:
        """Those of a stream as decided, without what is in flight."""
        return list(self._state.consumers.get((account, stream), {}).values())

    def consumer_count(self, account: str, stream: str) -> int:
        """How many consumers a stream has."""
        applied = self._state.consumers.get((account, stream), {})
        changed = self._overlay.consumers(account, stream)
        if not applied and not changed:
            return 0
        if self.stream(account, stream) is None:
            return 0
        made = sum(map(bool, changed.values()))
        return len(applied) - len(applied.keys() & changed.keys()) + made

    def consumer_total(self, account: str) -> int:
        """How many consumers an account has, without a look at each of its streams."""
        total = self._state.counts[account]
        for stream in self._overlay.touched(account):
            total -= len(self._state.consumers.get((account, stream), {}))
            total += self.consumer_count(account, stream)
        return total

    def accounts(self) -> list[str]:
        """Accounts that have streams."""
        names = {name for name, streams in self._state.streams.items() if streams}
        names |= {key[0] for key, made in self._overlay.items() if made is not None}
        return sorted(name for name in names if self.streams(name))

    def assets(self) -> list[Assignment]:
        """Everything assigned, streams first: for counting what each peer has."""
        found = self._state.assets()
        for key, made in self._overlay.items():
            found.pop(key, None)
            if made is not None:
                found[key] = made
        return [made for key, made in found.items() if not key[2] or (*key[:2], "") in found]

    def loads(self, without: StreamAssignment | None = None) -> Loads:
        """What each peer has been given; what the stream `without` reserves does not count."""
        if self._loads is None:
            self._loads = self._state.loads.copy()
            for key, made in self._overlay.items():
                self._loads.change(self._state.get(key), made)
        loads = self._loads.copy()
        if without is not None:
            loads.release(without)
        return loads

    def stream_count(self, account: str) -> int:
        """How many streams an account has."""
        applied = self._state.streams.get(account, {})
        changed = self._overlay.streams(account)
        made = sum(map(bool, changed.values()))
        return len(applied) - len(applied.keys() & changed.keys()) + made

    @property
    def servers(self) -> Mapping[str, MetaServer]:
        """Peer -> server, removed ones included."""
        return self._state.servers

    # The log.

    def apply(self, index: int, entry: bytes) -> int:
        """File one committed entry; 1 if it changed anything."""
        self.applied = index
        self._loads = None
        known = self._landed(entry)
        if known is not None and known.made is not None:
            return self._put(known.made)
        document = parse_object(entry) if known is None else known.document
        applier: Callable[[Document], int] = getattr(self, _APPLIERS[str(document["op"])])
        return applier(document)

    def _apply_asset(self, document: Document) -> int:
        return self._put(assignment_from(document))

    def _apply_restored(self, document: Document) -> int:
        stream, *consumers = restored_from(document)
        if self._state.get(key_of(stream)) is not None:
            return 0
        return min(map(self._put, (stream, *consumers)))

    def _put(self, made: Assignment) -> int:
        key = key_of(made)
        if key[2] and key[1] not in self._state.streams.get(key[0], {}):
            return 0
        before = self._state.get(key)
        made = _dated(made, before, self.applied)
        self._state.put(made)
        kind = ChangeKind.ADDED if before is None else ChangeKind.UPDATED
        self._changes.append(MetaChange(kind, *key, before=before, after=made))
        return 1

    def _apply_remove(self, document: Document) -> int:
        key = key_from(document)
        before = self._state.get(key)
        if before is None or not is_meant(before, document):
            return 0
        if not key[2]:
            for consumer in list(self._state.consumers.get(key[:2], {}).values()):
                self._removed(key_of(consumer), consumer)
        self._state.drop(key)
        self._removed(key, before)
        return 1

    def _removed(self, key: Key, before: Assignment) -> None:
        self._changes.append(MetaChange(ChangeKind.REMOVED, *key, before=before))

    def _apply_settle(self, document: Document) -> int:
        before = self._state.get(key_from(document))
        if before is None:
            return 0
        group = settled_by(before.group, document)
        return 0 if group is None else self._put(replace(before, group=group))

    def _apply_server(self, document: Document) -> int:
        peer, name = str(document["peer"]), str(document["name"])
        incarnation = document["incarnation"]
        assert isinstance(incarnation, int)
        made = MetaServer(peer, name, incarnation, str(document["cluster"]))
        before = self._state.servers.get(peer)
        if before == made:
            return 0
        self._state.servers[peer] = made
        kind = ChangeKind.ADDED if before is None or before.removed else ChangeKind.UPDATED
        self._changes.append(MetaChange(kind, server=made))
        return 1

    def _apply_remove_server(self, document: Document) -> int:
        before = self._state.servers.get(str(document["peer"]))
        if before is None or before.removed:
            return 0
        made = replace(before, removed=True)
        self._state.servers[made.peer] = made
        self._changes.append(MetaChange(ChangeKind.REMOVED, server=made))
        return 1

    def take_changes(self) -> list[MetaChange]:
        """What was applied since the last call, in order."""
        changes, self._changes = self._changes, []
        return changes

    # The overlay of a leader.

    def note_in_flight(self, entries: Iterable[bytes]) -> None:
        """These were proposed and not refused; requests see them from now on."""
        for entry in entries:
            document: Document = {}
            made = entry.made if isinstance(entry, AssetEntry) else None
            if made is None:
                document = parse_object(entry)
                made = assignment_from(document) if document["op"] in _ASSETS else None
            foreseen = self._foresee(document, made)
            if self._passes(foreseen):
                self._passing.add(entry)
            self._in_flight.append(_Proposal(entry, document, made, tuple(foreseen)))
            for key, after in foreseen.items():
                if self._loads is not None:
                    self._loads.change(self._seen(key), after)
                self._overlay.proposed(key, after)

    def _foresee(self, document: Document, made: Assignment | None) -> dict[Key, Assignment | None]:
        if made is not None:
            return {key_of(made): _dated(made, self._seen(key_of(made)), UNDATED)}
        op = document["op"]
        if op == "settle":
            return self._foresee_settled(document)
        if op == "restored":
            return {key_of(one): _dated(one, None, UNDATED) for one in restored_from(document)}
        if op != "remove":
            return {}
        account, stream, consumer = key = key_from(document)
        before = self._seen(key)
        if before is not None and not is_meant(before, document):
            return {}
        gone: dict[Key, Assignment | None] = {key: None}
        if not consumer:
            # A stream made anew while this is in flight has none of the old one's consumers.
            gone.update(((account, stream, name), None) for name in self.consumers(account, stream))
        return gone

    def _foresee_settled(self, document: Document) -> dict[Key, Assignment | None]:
        key = key_from(document)
        before = self._seen(key)
        group = None if before is None else settled_by(before.group, document)
        if before is None or group is None:
            return {}
        return {key: _dated(replace(before, group=group), before, UNDATED)}

    def _seen(self, key: Key) -> Assignment | None:
        return self._overlay[key] if key in self._overlay else self._state.get(key)

    def _passes(self, foreseen: Mapping[Key, Assignment | None]) -> bool:
        return bool(foreseen) and all(
            (made is None or ends_with_process(made))
            and ((before := self._seen(key)) is None or ends_with_process(before))
            for key, made in foreseen.items()
        )

    def is_passing(self, entry: bytes) -> bool:
        """Whether an entry that is in flight is about nothing but consumers that end with the
        process of the only server that has them."""
        return entry in self._passing

    def _landed(self, entry: bytes) -> "_Proposal | None":
        """The entry, if it is the first one in flight: that ends here."""
        if not self._in_flight or self._in_flight[0].entry != entry:
            return None
        landed = self._in_flight.popleft()
        self._passing.discard(entry)
        self._overlay.landed(landed.keys)
        return landed

    def drop_in_flight(self) -> None:
        """Leadership was lost: what becomes of the proposals is the next leader's to know."""
        self._in_flight.clear()
        self._passing.clear()
        self._overlay = Overlay()
        self._loads = None

    def is_in_flight(self, made: Assignment) -> bool:
        """Whether something is decided about an asset that is not applied yet."""
        return key_of(made) in self._overlay

    @property
    def in_flight(self) -> int:
        """Proposals not yet applied."""
        return len(self._in_flight)

    def snapshot(self) -> bytes:
        """The applied state as JSON."""
        return b"".join(self.portions())

    def portions(self) -> Iterator[bytes]:
        """The applied state as it is now, as JSON that is worded while it is taken: it takes a
        third of a second for 10,000 streams and as many consumers."""
        state = self._state
        servers = [
            [one.peer, one.name, one.incarnation, one.cluster, one.removed]
            for one in state.servers.values()
        ]
        facts: Document = {"applied": self.applied, "servers": servers}
        assets: dict[str, Sequence[Assignment]] = {
            "streams": _flat(state.streams),
            "consumers": _flat(state.consumers),
        }
        return worded(facts, assets)

    def restore(self, snapshot: bytes) -> None:
        """Replace the state; the differences are reported as changes."""
        before = self._state
        document: dict[str, Any] = parse_object(snapshot, bytes_max=OWN_BYTES_MAX)
        servers = [MetaServer(*item) for item in document["servers"]]
        self._state = state = Applied(servers)
        self.applied = document["applied"]
        for made in document["streams"]:
            state.put(stream_from(made))
        for made in document["consumers"]:
            state.put(consumer_from(made))
        self.drop_in_flight()
        self._changes.extend(_differences(before, state))


_ASSETS = ("stream", "consumer")
_APPLIERS = {
    "stream": "_apply_asset",
    "consumer": "_apply_asset",
    "restored": "_apply_restored",
    "remove": "_apply_remove",
    "settle": "_apply_settle",
    "server": "_apply_server",
    "remove_server": "_apply_remove_server",
}


def _flat(nested: Mapping[_K, Mapping[str, _V]]) -> list[_V]:
    return [made for _, inner in sorted(nested.items()) for _, made in sorted(inner.items())]


def _dated(made: Assignment, before: Assignment | None, index: int) -> Assignment:
    """With the index that gave the group its peers: this one, or the one that did before."""
    group = made.group
    if before is not None and before.group.name == group.name:
        known = before.group
        if (known.peers, known.former) == (group.peers, group.former):
            index = known.since
    return made if group.since == index else replace(made, group=replace(group, since=index))


def _differences(before: Applied, after: Applied) -> list[MetaChange]:
    """Removals first, consumers before their stream; then what is new or changed."""
    old, new = before.assets(), after.assets()
    gone = [key for key in reversed(list(old)) if key not in new]
    changes = [MetaChange(ChangeKind.REMOVED, *key, before=old[key]) for key in gone]
    for key, made in new.items():
        if key not in old:
            changes.append(MetaChange(ChangeKind.ADDED, *key, after=made))
        elif old[key] != made:
            changes.append(MetaChange(ChangeKind.UPDATED, *key, before=old[key], after=made))
    for peer, server in after.servers.items():
        known = before.servers.get(peer)
        if known != server:
            kind = ChangeKind.REMOVED if server.removed else ChangeKind.ADDED
            kind = ChangeKind.UPDATED if known and known.removed == server.removed else kind
            changes.append(MetaChange(kind, server=server))
    return changes
