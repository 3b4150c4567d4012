"""When events of the system account are due. Knows nothing of what they say."""

from dataclasses import field

from jsctl.broker.options import SECOND_NS
from jsctl.dataclass import dataclass

STATSZ_FIRST_NS = SECOND_NS // 4
STATSZ_MAX_NS = 10 * SECOND_NS
STATSZ_RATE_NS = SECOND_NS
ACCOUNT_CONNS_NS = 30 * SECOND_NS


@dataclass(slots=True)
class EventSchedule:
    """When statistics and account events are due.

    Statistics start 250 ms after the start and become rarer up to every 10 s; a JetStream
    change brings the next one forward, at most one a second.
    """

    statsz_due_ns: int
    _pause_ns: int = STATSZ_FIRST_NS
    _last_statsz_ns: int = 0
    _accounts: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def starting(now_ns: int) -> "EventSchedule":
        """The schedule of a server that starts now."""
        return EventSchedule(now_ns + STATSZ_FIRST_NS)

    def news(self, now_ns: int) -> None:
        """Others should know soon."""
        rate_ns = min(STATSZ_RATE_NS, self._pause_ns)
        self.statsz_due_ns = min(self.statsz_due_ns, max(now_ns, self._last_statsz_ns + rate_ns))

    def account_changed(self, account: str, now_ns: int) -> None:
        """A connection of an account came or went."""
        self._accounts[account] = now_ns

    def take_statsz(self, now_ns: int) -> bool:
        """Whether statistics are due; plans the next ones."""
        if now_ns < self.statsz_due_ns:
            return False
        self._last_statsz_ns = now_ns
        self._pause_ns = min(self._pause_ns * 2, STATSZ_MAX_NS)
        self.statsz_due_ns = now_ns + self._pause_ns
        return True

    def take_accounts(self, now_ns: int) -> list[str]:
        """Accounts whose event is due; they come again until `account_idle`."""
        due = [account for account, at_ns in self._accounts.items() if at_ns <= now_ns]
        for account in due:
            self._accounts[account] = now_ns + ACCOUNT_CONNS_NS
        return due

    def account_idle(self, account: str) -> None:
        """The account has no connection here any more: no more events until one comes."""
        self._accounts.pop(account, None)

    def deadline_ns(self) -> int:
        """When something is due next."""
        return min(self.statsz_due_ns, *self._accounts.values(), self.statsz_due_ns)
