"""What streams without limits retention let go of: only what none of their consumers needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jsctl.api.words import Retention
from tests.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.simulation.checks import Checker
    from tests.simulation.consumer_checks import ConsumerBooks
    from tests.simulation.stream_checks import Books


def consumed(checker: Checker, stream: str) -> set[int]:
    """Messages with which all consumers of a stream are done by now, of which one may be deleted:
    the stream lets go of them, whoever is made in its place meanwhile."""
    known = [one.consumer for one in checker.groups.values() if one.stream == stream]
    books = [one for one in known if one is not None]
    done = {seq for one in books for seq in one.done}
    rest = [one for one in books if one.first and checker.exists(one.group)]
    return {seq for seq in done if not any(one.needs(seq) for one in rest)}


def check_removals(checker: Checker) -> None:
    """Raises Violation."""
    for known in list(checker.groups.values()):
        books = known.books
        if books is None or not books.model.consumed:
            continue
        # Who works off a queue has done that for whoever is made in his place: his acks may come
        # in at a server that has not heard of it.
        queue = books.model.config.retention is Retention.WORK_QUEUE
        done = _done_by_deleted(checker, books) if queue else set()
        for other in list(checker.groups.values()):
            one = other.consumer
            if one is not None and one.books() is books and checker.exists(other.name):
                _check_claims(checker, one, done, other.name)
        books.model.consumed.clear()


def _done_by_deleted(checker: Checker, books: Books) -> set[int]:
    known = [one.consumer for one in list(checker.groups.values())]
    own = [one for one in known if one is not None and one.books() is books]
    return {seq for one in own if not checker.exists(one.group) for seq in one.handled()}


def _check_claims(checker: Checker, one: ConsumerBooks, done: set[int], name: str) -> None:
    books = one.books()
    assert books is not None
    for seq, index in books.model.consumed:
        has_claim = index > one.since and seq not in one.consumed_before and seq not in done
        if has_claim and one.needs(seq) and not checker.excused(name):
            raise Violation(f"{books.name} removes {seq}, which {one.name} needs")
