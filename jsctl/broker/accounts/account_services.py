"""What the server itself listens to in every account: those of now, and those that come later."""

from collections.abc import Callable, Iterable

from jsctl.broker.accounts.accounts import Account, AccountChange, AccountChangeKind, Accounts
from jsctl.broker.interest.targets import Subscription
from jsctl.broker.options import AccountOptions

Install = Callable[[Account], Iterable[Subscription]]
"""Has a service listen in an account; what it made is returned."""
Wanted = Callable[[AccountOptions], bool]
"""Whether a service is for an account with such options."""


def _everywhere(_options: AccountOptions) -> bool:
    return True


class AccountServices:
    """Services with their subscriptions in each account."""

    def __init__(self, accounts: Accounts, remove: Callable[[Subscription], None]) -> None:
        self._accounts = accounts
        self._remove = remove
        self._offered: list[tuple[Install, Wanted]] = []
        self._made: dict[Account, dict[Install, list[Subscription]]] = {}

    def offer(self, install: Install, wanted: Wanted = _everywhere) -> None:
        """Have a service from now on in every account for which it is."""
        self._offered.append((install, wanted))
        for account in self._accounts:
            self._fit(account, install, wanted)

    def follow(self, changes: Iterable[AccountChange]) -> None:
        """Listen in new accounts, and in those that are gone, or changed so, no more."""
        for change in changes:
            if change.kind is AccountChangeKind.REMOVED:
                for made in self._made.pop(change.account, {}).values():
                    self._withdraw(made)
                continue
            for install, wanted in self._offered:
                self._fit(change.account, install, wanted)

    def _fit(self, account: Account, install: Install, wanted: Wanted) -> None:
        made = self._made.setdefault(account, {})
        if not wanted(account.options):
            self._withdraw(made.pop(install, []))
        elif install not in made:
            made[install] = list(install(account))

    def _withdraw(self, made: list[Subscription]) -> None:
        for sub in made:
            self._remove(sub)
