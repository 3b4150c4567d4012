"""What accounts may have of a server alone: together no more than it has.

In a cluster nobody knows how much there will be, and streams are placed where there is room.
"""

from collections.abc import Mapping, Sequence

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


def allot(options: Options, before: Limits, first: Sequence[str] = ()) -> Allotment:
    """Give accounts what they want, as far as there is room: who asks for no more than `before`
    first, then those named `first`, then the others as they are listed."""
    asked = wanted(options)
    refused = {
        one.name: NOT_THE_SYSTEMS
        for one in options.accounts
        if one.jetstream is not None and one.name not in asked
    }
    if not options.jetstream.enabled or options.replicated:
        return Allotment(asked, refused)
    given = {name: before[name] for name in asked if name in before}
    for name in sorted(asked, key=lambda one: _rank(one, asked, given, first)):
        others = [limits for one, limits in given.items() if one != name]
        error = _lacking(options, [*others, asked[name]])
        if error and not _is_less(asked[name], given.get(name)):
            refused[name] = error
        else:
            given[name] = asked[name]
    return Allotment(given, refused)


def overcommitted(options: Options) -> str:
    """What a server lacks that has less than its accounts may have together; empty where that does
    not matter."""
    if not options.jetstream.enabled or options.replicated:
        return ""
    return _lacking(options, list(wanted(options).values()))


def _rank(name: str, asked: Limits, given: Limits, first: Sequence[str]) -> int:
    if _is_less(asked[name], given.get(name)):
        return 0
    return 1 if name in given else 2 if name in first else 3


def _is_less(limits: AccountJetStream, before: AccountJetStream | None) -> bool:
    """Whether limits take no more than those before."""
    if before is None:
        return False
    now, then = _bytes(limits), _bytes(before)
    return now[0] <= then[0] and now[1] <= then[1]


def _lacking(options: Options, every: Sequence[AccountJetStream]) -> str:
    jetstream, sizes = options.jetstream, [_bytes(one) for one in every]
    limits = (jetstream.memory_bytes_max, _NO_MEMORY), (jetstream.store_bytes_max, _NO_STORE)
    for kind, (most, error) in enumerate(limits):
        if most != UNLIMITED and sum(size[kind] for size in sizes) > most:
            found = api_error(error)
            return f"{found.description} ({found.err_code})"
    return ""


def _bytes(limits: AccountJetStream) -> tuple[int, int]:
    """Memory and storage that are set aside for an account; what is not limited takes nothing."""
    every = [one for _, one in limits.tiers] or [limits]
    return (
        sum(max(one.memory_bytes_max, 0) for one in every),
        sum(max(one.store_bytes_max, 0) for one in every),
    )
