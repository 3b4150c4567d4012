"""What each account uses of JetStream, on this server and on all."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeVar

from jsctl.api.errors import ApiError, api_error
from jsctl.broker.assets.assets import StreamKey
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.view import NOTHING_HELD, AccountUsage, HeldBytes
from jsctl.broker.jetstream.allotting import Allotment, allot, wanted
from jsctl.broker.jetstream.quotas import ALL, AccountQuota, TierLimits, tier_name
from jsctl.broker.options import AccountJetStream, AccountOptions, Options
from jsctl.broker.peers.use_items import AccountUse, TierUse
from jsctl.dataclass import dataclass

SUM_NS = 1_000_000_000
"""How old sums may be while there is plenty of room."""
PLENTY_BYTES = 1 << 30
SUM_PAUSE_NS = 100_000
"""How old they may be otherwise, for each stream that has to be asked."""

_FREE = TierLimits()
_Use = TypeVar("_Use", AccountUse, TierUse)
_Key = TypeVar("_Key", str, tuple[str, str])


@dataclass(slots=True)
class Counts:
    """API requests that came in on this server."""

    total: int = 0
    errors: int = 0


@dataclass(slots=True)
class Usage:
    """Use by account. Bytes count once for each replica. Implements `replica_context.Quota`."""

    options: Options
    streams: Mapping[StreamKey, StreamReplica]
    """Those with a replica on this server."""
    counts: dict[str, Counts] = field(default_factory=dict)
    elsewhere: dict[str, list[AccountUse]] = field(default_factory=dict)
    """Peer -> what it last told."""
    tiers_elsewhere: dict[str, list[TierUse]] = field(default_factory=dict)
    """The same, of tiers."""
    _accounts: dict[str, AccountOptions] = field(default_factory=dict)
    _allotment: Allotment = field(default_factory=lambda: Allotment({}, {}))
    _flat: frozenset[str] = frozenset()
    """Accounts without tiers."""
    _configured: bool = False
    """The configuration says which accounts may use JetStream."""
    _sums: dict[tuple[str, str], HeldBytes] = field(default_factory=dict)
    """(account, tier) -> what all servers hold."""
    _total: HeldBytes = NOTHING_HELD
    """What this server holds."""
    _summed_due_ns: int = 0
    _quotas: dict[str, AccountQuota] = field(default_factory=dict)
    """Those that were asked for with these options: each request asks some times."""

    def __post_init__(self) -> None:
        # Who stores what is known once it is loaded: until then all have what they want.
        self._take_options()
        self._have(Allotment(wanted(self.options), {}))

    def change_options(self, options: Options) -> None:
        """Take the limits of a configuration; they count from the next look."""
        self.options = options
        self._take_options()
        self._allot(self._allotment)

    def loaded(self) -> None:
        """What is stored is known: those whose it is go before others where not all have room."""
        self._allot(Allotment({}, {}))

    @property
    def refused(self) -> Mapping[str, str]:
        """Account -> why it does not have what it wants."""
        return self._allotment.refused

    def _allot(self, before: Allotment) -> None:
        owners = {account for account, _ in self.streams}
        self._have(allot(self.options, before.given, owners))

    def _have(self, allotment: Allotment) -> None:
        self._allotment = allotment
        self._quotas = {}
        self._flat = frozenset(name for name in self._accounts if not self._given(name).tiers)

    def _given(self, name: str) -> AccountJetStream:
        return self._allotment.given.get(name) or AccountJetStream()

    def _take_options(self) -> None:
        self._summed_due_ns = 0
        self._accounts = {account.name: account for account in self.options.accounts}
        self._accounts.setdefault("$G", AccountOptions(name="$G"))
        self._configured = any(one.jetstream is not None for one in self.options.accounts)

    def count(self, account: str, *, error: bool) -> None:
        """One API request was answered."""
        counts = self.counts.setdefault(account, Counts())
        counts.total += 1
        counts.errors += error

    def here(self) -> list[AccountUse]:
        """What this server holds, by account."""
        memory: dict[str, int] = {}
        store: dict[str, int] = {}
        for (account, _), replica in self.streams.items():
            used = memory if replica.volatile else store
            used[account] = used.get(account, 0) + replica.stored.stream.store.size_bytes
        return [
            AccountUse(
                name,
                memory.get(name, 0),
                store.get(name, 0),
                self.counts.get(name, Counts()).total,
                self.counts.get(name, Counts()).errors,
            )
            for name in sorted({*memory, *store, *self.counts})
        ]

    def tiers_here(self) -> list[TierUse]:
        """What this server holds by tier, of accounts with tiers, and of those whose limits it does
        not know."""
        held: dict[tuple[str, str], HeldBytes] = {}
        for (account, _), replica in self.streams.items():
            if account not in self._flat and (tier := self._tier(account, replica)):
                _add(held, (account, tier), _stored(replica, replica.store.size_bytes))
        return [TierUse(*key, one.memory, one.store) for key, one in sorted(held.items())]

    def told(self, peer: str, uses: Iterable[AccountUse], tiers: Iterable[TierUse]) -> None:
        """What a peer holds. Where its frame was split, what tiers hold comes behind."""
        if found := list(uses):
            self.elsewhere[peer] = found
            self.tiers_elsewhere[peer] = []
        self.tiers_elsewhere.setdefault(peer, []).extend(tiers)

    def _tier(self, account: str, replica: StreamReplica) -> str:
        quota, replicas = self.account(account), replica.assignment.config.num_replicas
        return tier_name(replicas) if quota is None else quota.tier(replicas)

    def refusal(
        self, account: str, replicas: int, *, volatile: bool, now_ns: int
    ) -> ApiError | None:
        """Why a stream may not take more. Sums are renewed often when a limit is near."""
        quota = self.account(account)
        limits = _FREE if quota is None else quota.maybe_limits(replicas)
        if limits is None:
            return api_error("JSNoLimitsErr")
        jetstream = self.options.jetstream
        server_max = jetstream.memory_bytes_max if volatile else jetstream.store_bytes_max
        most = limits.stored_max(replicas, memory=volatile)
        if most < 0 and server_max < 0:
            return None
        if now_ns >= self._summed_due_ns:
            self._summed_due_ns = now_ns + SUM_NS
            self._sum()
        room, left = PLENTY_BYTES, PLENTY_BYTES
        if server_max >= 0:
            room = server_max - self._total.bytes(memory=volatile)
        if most >= 0:
            held = self._sums.get((account, limits.tier), NOTHING_HELD)
            left = most - held.bytes(memory=volatile)
        if min(room, left) < PLENTY_BYTES:
            # There may be more at any moment, as less: somebody purges a stream when it is full.
            soon_ns = now_ns + SUM_PAUSE_NS * len(self.streams)
            self._summed_due_ns = min(self._summed_due_ns, soon_ns)
        if room <= 0:
            return api_error("JSInsufficientResourcesErr")
        return api_error("JSAccountResourcesExceededErr") if left <= 0 else None

    def _sum(self) -> None:
        """Add up what is stored, and what this server has admitted and not stored yet."""
        here = self.here()
        total, sums = NOTHING_HELD, dict[tuple[str, str], HeldBytes]()
        for use in here:
            total += HeldBytes(use.memory, use.store)
        for use in [*here, *_all(self.elsewhere)]:
            _add(sums, (use.account, ALL), HeldBytes(use.memory, use.store))
        for part in [*self.tiers_here(), *_all(self.tiers_elsewhere)]:
            _add(sums, (part.account, part.tier), HeldBytes(part.memory, part.store))
        for (account, _), replica in self.streams.items():
            if replica.leader is not None and replica.leader.in_flight.bytes:
                coming = _stored(replica, replica.leader.in_flight.bytes)
                total += coming
                for tier in {ALL, self._tier(account, replica)}:
                    _add(sums, (account, tier), coming)
        self._total, self._sums = total, sums

    def enabled(self, name: str) -> bool:
        """Whether an account may use JetStream."""
        account = self._accounts.get(name)
        if account is None or not self.options.jetstream.enabled:
            return False
        return name in self._allotment.given or (name == "$G" and not self._configured)

    def account(self, name: str) -> AccountQuota | None:
        """Limits of an account; None for one that is not known."""
        known = self._quotas.get(name)
        if known is None and (account := self._accounts.get(name)) is not None:
            known = self._quotas[name] = self._quota(account)
        return known

    def _quota(self, account: AccountOptions) -> AccountQuota:
        limits = self._given(account.name)
        tiers = {tier: _limits(tier, given) for tier, given in limits.tiers or [(ALL, limits)]}
        return AccountQuota(account.name, self.enabled(account.name), tiers)

    def of_account(self, name: str) -> AccountUsage:
        """What an account uses, here and on the servers that told of it."""
        uses = [use for use in [*self.here(), *_all(self.elsewhere)] if use.account == name]
        quota, tiers = self.account(name), dict[str, HeldBytes]()
        if quota is None or quota.tiered:
            for part in [*self.tiers_here(), *_all(self.tiers_elsewhere)]:
                if part.account == name:
                    _add(tiers, part.tier, HeldBytes(part.memory, part.store))
        return AccountUsage(
            HeldBytes(sum(use.memory for use in uses), sum(use.store for use in uses)),
            sum(use.api_total for use in uses),
            sum(use.api_errors for use in uses),
            tiers,
        )


def _all(told: Mapping[str, list[_Use]]) -> list[_Use]:
    return [one for uses in told.values() for one in uses]


def _add(sums: dict[_Key, HeldBytes], key: _Key, held: HeldBytes) -> None:
    sums[key] = sums.get(key, NOTHING_HELD) + held


def _stored(replica: StreamReplica, size: int) -> HeldBytes:
    return HeldBytes(memory=size) if replica.volatile else HeldBytes(store=size)


def _limits(tier: str, given: AccountJetStream) -> TierLimits:
    return TierLimits(
        tier=tier,
        memory_max=given.memory_bytes_max,
        store_max=given.store_bytes_max,
        streams_max=given.streams_max,
        consumers_max=given.consumers_max,
        ack_pending_max=given.ack_pending_max,
        memory_stream_bytes_max=given.memory_stream_bytes_max,
        store_stream_bytes_max=given.store_stream_bytes_max,
        bytes_required=given.stream_bytes_required,
    )
