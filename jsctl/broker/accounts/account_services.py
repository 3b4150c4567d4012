"""What the server itself listens to in every account: those of now, and those that come later."""

from collections.abc import Callable, Iterable

from jsctl.broker.accounts.accounts import Account, AccountChange, AccountChangeKind, Accounts
from jsctl.broker.interest.targets import Subscription

Install = Callable[[Account], Iterable[Subscription]]
"""Has a service listen in an account; what it made is returned."""


class AccountServices:
    """Services with their subscriptions in each account."""

    def __init__(self, accounts: Accounts, remove: Callable[[Subscription], None]) -> None:
        self._accounts = accounts
        self._remove = remove
        self._installers: list[Install] = []
        self._made: dict[Account, list[Subscription]] = {}

    def offer(self, install: Install) -> None:
        """Have a service in every account from now on."""
        self._installers.append(install)
        for account in self._accounts:
            self._made.setdefault(account, []).extend(install(account))

    def follow(self, changes: Iterable[AccountChange]) -> None:
        """Listen in new accounts, and in those that are gone no more."""
        for change in changes:
            if change.kind is AccountChangeKind.ADDED:
                made = self._made.setdefault(change.account, [])
                for install in self._installers:
                    made.extend(install(change.account))
            elif change.kind is AccountChangeKind.REMOVED:
                for sub in self._made.pop(change.account, ()):
                    self._remove(sub)
