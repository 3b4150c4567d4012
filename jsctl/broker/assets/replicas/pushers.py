"""Push consumers on this server, told when it matters to them who listens.

An account that nobody began or ceased to listen in costs one look a turn, however many consumers
it has; a change costs those whose subject it is about one question. A pattern with wildcards is
followed token by token: each consumer listens to some of its own, to be told what is acknowledged.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field

from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.replica_context import AccountTraffic
from jsctl.broker.subject.patterns import PatternSet
from jsctl.broker.subject.validity import has_wildcard
from jsctl.dataclass import dataclass

_Replicas = dict[str, ConsumerReplica]
"""By group."""


@dataclass(slots=True)
class _Account:
    """Push consumers by the subject they deliver to, which has no wildcards."""

    replicas: dict[bytes, _Replicas] = field(default_factory=dict)
    subjects: PatternSet = field(default_factory=PatternSet)
    """The same subjects, each its own owner."""

    def put(self, subject: bytes, replica: ConsumerReplica) -> None:
        self.replicas.setdefault(subject, {})[replica.group.name] = replica
        self.subjects.insert(subject, subject.decode())

    def remove(self, subject: bytes, group: str) -> None:
        there = self.replicas[subject]
        del there[group]
        if not there:
            del self.replicas[subject]
            self.subjects.remove(subject, subject.decode())

    def matching(self, patterns: set[bytes]) -> set[bytes]:
        """The subjects that a pattern matches."""
        found = {pattern for pattern in patterns if pattern in self.replicas}
        for pattern in filter(has_wildcard, patterns):
            found.update(subject.encode() for subject in self.subjects.owners_meeting(pattern))
        return found


@dataclass(slots=True)
class Pushers:
    """By account, then by the subject they deliver to."""

    traffic: AccountTraffic
    _by_account: dict[str, _Account] = field(default_factory=dict)
    _places: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Group -> where its replica is."""

    def put(self, replica: ConsumerReplica) -> None:
        """A replica was built, or assigned anew; of other consumers than push consumers, too."""
        subject = replica.assignment.config.deliver_subject.encode()
        place = replica.account, subject
        if self._places.get(replica.group.name) == place:
            return
        self.remove(replica)
        if subject:
            self._places[replica.group.name] = place
            self._by_account.setdefault(replica.account, _Account()).put(subject, replica)

    def remove(self, replica: ConsumerReplica) -> None:
        """A replica is gone."""
        place = self._places.pop(replica.group.name, None)
        if place is None:
            return
        account, subject = place
        there = self._by_account[account]
        there.remove(subject, replica.group.name)
        if not there.replicas:
            del self._by_account[account]

    def clear(self) -> None:
        """All replicas are gone."""
        self._by_account.clear()
        self._places.clear()

    @property
    def stirred(self) -> bool:
        """Whether `concerned` has somebody to ask."""
        return any(map(self.traffic.has_changes, self._by_account))

    def concerned(self) -> Iterator[ConsumerReplica]:
        """Those for whom somebody began to listen since the last call, or nobody does any more."""
        for account, there in self._by_account.items():
            changes = self.traffic.changes(account)
            if changes is None:
                subjects: Iterable[bytes] = there.replicas
            elif changes:
                subjects = there.matching(set(changes))
            else:
                continue
            for subject in subjects:
                for replica in there.replicas[subject].values():
                    if replica.interest_changed():
                        yield replica
