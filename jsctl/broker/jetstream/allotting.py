"""What accounts may have of a server alone: together no more than it has.

In a cluster nobody knows how much there will be, and streams are placed where there is room.
"""

from collections.abc import Collection, Iterable, Mapping

from jsctl.api.errors import api_error
from jsctl.broker.options import UNLIMITED, AccountJetStream, Options
from jsctl.dataclass import dataclass

Limits = Mapping[str, AccountJetStream]
"""Account -> what it may have."""
NOT_THE_SYSTEMS = "jetstream can not be enabled on the system account"
_NO_MEMORY, _NO_STORE = "JSMemoryResourcesExceededErr", "JSStorageResourcesExceededErr"


@dataclass(frozen=True, slots=True)
class Allotment:
    """What accounts have; those that want more have what they had before, or nothing."""

    given: dict[str, AccountJetStream]
    refused: dict[str, str]
    """Account -> why it does not get what it wants."""


def wanted(options: Options) -> dict[str, AccountJetStream]:
    """What the accounts of a server ask for, but for the system account, which gets nothing."""
    return {
        one.name: one.jetstream
        for one in options.accounts
        if one.jetstream is not None and one.name != options.system_account
    }


def allot(options: Options, before: Limits, first: Collection[str] = ()) -> Allotment:
    """Give accounts what they want, as far as there is room: who asks for no more than `before`
    first, then those that have something, then those among `first`, then the others as they are
    listed."""
    asked = wanted(options)
    refused = {
        one.name: NOT_THE_SYSTEMS
        for one in options.accounts
        if one.jetstream is not None and one.name not in asked
    }
    if not overcommitted(options):
        return Allotment(asked, refused)
    given = {name: before[name] for name in asked if name in before}
    taken = _sum(given.values())
    for name in sorted(asked, key=lambda one: _rank(one, asked, given, first)):
        had, wants = _bytes(given.get(name)), _bytes(asked[name])
        then = (taken[0] - had[0] + wants[0], taken[1] - had[1] + wants[1])
        why = _lacking(options, then)
        if why and not (name in given and wants[0] <= had[0] and wants[1] <= had[1]):
            refused[name] = why
        else:
            given[name], taken = asked[name], then
    return Allotment(given, refused)


def overcommitted(options: Options) -> str:
    """What a server lacks that has less than its accounts may have together; empty where that does
    not matter."""
    if not options.jetstream.enabled or options.replicated:
        return ""
    return _lacking(options, _sum(wanted(options).values()))


def _rank(name: str, asked: Limits, given: Limits, first: Collection[str]) -> int:
    if name in given:
        had, wants = _bytes(given[name]), _bytes(asked[name])
        return 0 if wants[0] <= had[0] and wants[1] <= had[1] else 1
    return 2 if name in first else 3


def _lacking(options: Options, size: tuple[int, int]) -> str:
    """What there is not so much of: memory, or storage. What was found out at the start is no
    limit here: the next one may find less."""
    jetstream = options.jetstream
    limits = (
        (jetstream.memory_bytes_max, jetstream.memory_is_found, _NO_MEMORY),
        (jetstream.store_bytes_max, jetstream.store_is_found, _NO_STORE),
    )
    for wants, (most, found_out, error) in zip(size, limits, strict=True):
        if most != UNLIMITED and not found_out and wants > most:
            found = api_error(error)
            return f"{found.description} ({found.err_code})"
    return ""


def _sum(every: Iterable[AccountJetStream]) -> tuple[int, int]:
    sizes = list(map(_bytes, every))
    return sum(memory for memory, _ in sizes), sum(store for _, store in sizes)


def _bytes(limits: AccountJetStream | None) -> tuple[int, int]:
    """Memory and storage that are set aside for an account; what is not limited takes nothing."""
    if limits is None:
        return 0, 0
    every = [one for _, one in limits.tiers] or [limits]
    return (
        sum(max(one.memory_bytes_max, 0) for one in every),
        sum(max(one.store_bytes_max, 0) for one in every),
    )
