"""What each account uses of JetStream, on this server and on all."""

from collections.abc import Mapping
from dataclasses import field

from jsctl.api.errors import ApiError, api_error
from jsctl.broker.assets.assets import StreamKey
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.view import AccountQuota, AccountUsage
from jsctl.broker.options import AccountOptions, Options
from jsctl.broker.peers.items import AccountUse
from jsctl.dataclass import dataclass

SUM_NS = 1_000_000_000
"""How old sums may be while there is plenty of room."""
PLENTY_BYTES = 1 << 30
SUM_PAUSE_NS = 100_000
"""How old they may be otherwise, for each stream that has to be asked."""


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
    _accounts: dict[str, AccountOptions] = field(default_factory=dict)
    _configured: bool = False
    """The configuration says which accounts may use JetStream."""
    _sums: dict[str, tuple[int, int]] = field(default_factory=dict)
    _total: tuple[int, int] = (0, 0)
    _summed_due_ns: int = 0
    _quotas: dict[str, AccountQuota] = field(default_factory=dict)
    """Those that were asked for with these options: each request asks some times."""

    def __post_init__(self) -> None:
        self.change_options(self.options)

    def change_options(self, options: Options) -> None:
        """Take the limits of a configuration; they count from the next look."""
        self.options = options
        self._quotas = {}
        self._summed_due_ns = 0
        self._accounts = {account.name: account for account in self.options.accounts}
        self._accounts.setdefault("$G", AccountOptions(name="$G"))
        self._configured = any(one.jetstream is not None for one in options.accounts)

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

    def refusal(self, account: str, *, volatile: bool, now_ns: int) -> ApiError | None:
        """Why a stream may not take more. Sums are renewed often when a limit is near."""
        known = self._accounts.get(account)
        limits = known.jetstream if known is not None else None
        jetstream = self.options.jetstream
        server_max = jetstream.memory_bytes_max if volatile else jetstream.store_bytes_max
        if not limits and server_max < 0:
            return None
        if now_ns >= self._summed_due_ns:
            self._summed_due_ns = now_ns + SUM_NS
            self._sum()
        kind = 0 if volatile else 1
        room = server_max - self._total[kind] if server_max >= 0 else PLENTY_BYTES
        left = PLENTY_BYTES
        if limits is not None:
            account_max = limits.memory_bytes_max if volatile else limits.store_bytes_max
            if account_max >= 0:
                left = account_max - self._sums.get(account, (0, 0))[kind]
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
        total, sums = [0, 0], dict[str, list[int]]()
        for use in [*here, *(use for told in self.elsewhere.values() for use in told)]:
            held = sums.setdefault(use.account, [0, 0])
            held[0] += use.memory
            held[1] += use.store
        for use in here:
            total[0] += use.memory
            total[1] += use.store
        for (account, _), replica in self.streams.items():
            if replica.leader is not None and replica.leader.in_flight.bytes:
                kind = 0 if replica.volatile else 1
                sums.setdefault(account, [0, 0])[kind] += replica.leader.in_flight.bytes
                total[kind] += replica.leader.in_flight.bytes
        self._total = (total[0], total[1])
        self._sums = {account: (held[0], held[1]) for account, held in sums.items()}

    def enabled(self, name: str) -> bool:
        """Whether an account may use JetStream."""
        account = self._accounts.get(name)
        if account is None or not self.options.jetstream.enabled:
            return False
        return account.jetstream is not None or (name == "$G" and not self._configured)

    def account(self, name: str) -> AccountQuota | None:
        """Limits of an account; None for one that is not known."""
        known = self._quotas.get(name)
        if known is None and (account := self._accounts.get(name)) is not None:
            known = self._quotas[name] = self._quota(account)
        return known

    def _quota(self, account: AccountOptions) -> AccountQuota:
        limits = account.jetstream
        unlimited = -1
        return AccountQuota(
            name=account.name,
            enabled=self.enabled(account.name),
            memory_max=limits.memory_bytes_max if limits else unlimited,
            store_max=limits.store_bytes_max if limits else unlimited,
            streams_max=limits.streams_max if limits else unlimited,
            consumers_max=limits.consumers_max if limits else unlimited,
            ack_pending_max=limits.ack_pending_max if limits else unlimited,
            memory_stream_bytes_max=limits.memory_stream_bytes_max if limits else unlimited,
            store_stream_bytes_max=limits.store_stream_bytes_max if limits else unlimited,
            bytes_required=bool(limits and limits.stream_bytes_required),
        )

    def of_account(self, name: str) -> AccountUsage:
        """What an account uses, here and on the servers that told of it."""
        uses = [use for use in self.here() if use.account == name]
        for told in self.elsewhere.values():
            uses += [use for use in told if use.account == name]
        return AccountUsage(
            sum(use.memory for use in uses),
            sum(use.store for use in uses),
            sum(use.api_total for use in uses),
            sum(use.api_errors for use in uses),
        )
