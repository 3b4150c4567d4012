"""Push consumers on this server, told when it matters to them who listens.

An account that nobody began or ceased to listen in costs one look a turn, however many consumers
it has; a change costs those whose subject it is about one question. Only patterns with wildcards
are compared with all subjects.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.replica_context import AccountTraffic
from jsctl.broker.subject.matching import matches
from jsctl.broker.subject.validity import has_wildcard

_Replicas = dict[str, ConsumerReplica]
"""By group."""


@dataclass(slots=True)
class Pushers:
    """By account, then by the subject they deliver to."""

    traffic: AccountTraffic
    _by_account: dict[str, dict[bytes, _Replicas]] = field(default_factory=dict)
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
            by_subject = self._by_account.setdefault(replica.account, {})
            by_subject.setdefault(subject, {})[replica.group.name] = replica

    def remove(self, replica: ConsumerReplica) -> None:
        """A replica is gone."""
        place = self._places.pop(replica.group.name, None)
        if place is None:
            return
        account, subject = place
        by_subject = self._by_account[account]
        del by_subject[subject][replica.group.name]
        if not by_subject[subject]:
            del by_subject[subject]
        if not by_subject:
            del self._by_account[account]

    def clear(self) -> None:
        """All replicas are gone."""
        self._by_account.clear()
        self._places.clear()

    def concerned(self) -> Iterator[ConsumerReplica]:
        """Those for whom somebody began to listen since the last call, or nobody does any more."""
        for account, by_subject in self._by_account.items():
            changes = self.traffic.changes(account)
            if changes is None:
                subjects: Iterable[bytes] = by_subject
            elif changes:
                subjects = _matching(by_subject, set(changes))
            else:
                continue
            for subject in subjects:
                for replica in by_subject[subject].values():
                    if replica.interest_changed():
                        yield replica


def _matching(subjects: Iterable[bytes], patterns: set[bytes]) -> set[bytes]:
    """Those of literal subjects that a pattern matches."""
    wild = [pattern for pattern in patterns if has_wildcard(pattern)]
    found = patterns.intersection(subjects)
    for pattern in wild:
        found.update(subject for subject in subjects if matches(subject, pattern))
    return found
