"""Accounts of JWTs that change while the server runs: they are stored, and then they count.

The node says what is to change, which it has checked. One batch after the other is carried out:
files are written beside the turns, all that came meanwhile is the next batch. What cannot be
stored, or would not work, is refused, and nothing of it has changed then. The same is done with
what ceases to count, or begins to, by the time alone.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from jsctl.broker.claims.accounts import ResolvedAccounts, resolve
from jsctl.broker.claims.ages import next_change_s
from jsctl.broker.conf import jwt_directory
from jsctl.broker.errors import ConfigError
from jsctl.broker.login_options.operators import OperatorOptions, ResolverKind, ResolverOptions
from jsctl.broker.options import AccountOptions, Options
from jsctl.broker.server.logfile import ServerLog
from jsctl.broker.turn import ClaimsChange, LogLevel
from jsctl.dataclass import replace

SECOND_NS = 1_000_000_000
LOOK_AFTER_S_MAX = 3600.0
"""Clocks are set: the time is looked at so often at least."""
FULL = "jwt store is full"
Tokens = tuple[tuple[str, str], ...]


class Owner(Protocol):
    """Whose accounts they are."""

    @property
    def options(self) -> Options:
        """Those that count now."""

    def try_accounts(self, accounts: tuple[AccountOptions, ...]) -> None:
        """Raises ConfigError for those that would not work."""

    def take_accounts(
        self, operator: OperatorOptions, accounts: tuple[AccountOptions, ...]
    ) -> None:
        """These count from now on. Raises ConfigError for a bug, which ends the server."""

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Have something done beside the turns."""

    def changed(self, told: list[tuple[int, str]]) -> None:
        """Tell the node what came of changes: (ticket, what went wrong)."""


class AccountKeeper:
    """See the module."""

    def __init__(
        self, owner: Owner, log: ServerLog, wall_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._owner = owner
        self._log = log
        self._wall_ns = wall_ns
        self._waiting: list[ClaimsChange] = []
        self._works = False
        self._timer: asyncio.TimerHandle | None = None
        self._told: set[str] = set()

    @property
    def _resolver(self) -> ResolverOptions:
        return self._owner.options.operator.resolver

    @property
    def _now_s(self) -> int:
        return self._wall_ns() // SECOND_NS

    def begin(self) -> None:
        """The configuration was read, for the first time or again: what it brings is stored, too,
        and the time is looked at."""
        self._told.update(self._owner.options.warnings)
        resolver = self._resolver
        if resolver.kind is ResolverKind.FULL:
            known = dict(resolver.known)
            given = [one for one in resolver.preload if known.get(one[0]) == one[1]]
            lacking = jwt_directory.missing(Path(resolver.directory), given)
            if lacking:
                self._store(resolver, lacking)
        self._plan()

    def end(self) -> None:
        """The server ends."""
        if self._timer is not None:
            self._timer.cancel()

    # Changes

    def take(self, changes: Sequence[ClaimsChange]) -> None:
        """Carry out what the node wants; it is told when that is done."""
        self._waiting += changes
        if not self._works:
            self._works = True
            self._owner.begin(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                self._owner.changed(await self._carry_out(batch))
        finally:
            self._works = False

    async def _carry_out(self, batch: Sequence[ClaimsChange]) -> list[tuple[int, str]]:
        """What went wrong with each."""
        resolver = self._resolver
        refused = self._refused(batch)
        for one in batch:
            if one.ticket in refused:
                text = f"account {one.account} is not taken: {refused[one.ticket]}"
                self._log.line(LogLevel.WARNING, text)
        fit = [one for one in batch if one.ticket not in refused]
        if resolver.kind is ResolverKind.FULL and fit:
            files = [(one.account, one.token) for one in fit]
            errors = await asyncio.to_thread(self._store, resolver, files)
            refused |= {one.ticket: error for one, error in zip(fit, errors, strict=True) if error}
        # The configuration may have been read again meanwhile.
        tokens = dict(self._resolver.known)
        for one in batch:
            if one.ticket in refused:
                continue
            if one.token:
                tokens[one.account] = one.token
            else:
                tokens.pop(one.account, None)
        self._take(tuple(sorted(tokens.items())))
        return [(one.ticket, refused.get(one.ticket, "")) for one in batch]

    def _refused(self, batch: Sequence[ClaimsChange]) -> dict[int, str]:
        """Ticket -> why, of those that there is no room for, or that would not work."""
        refused: dict[int, str] = {}
        resolver = self._resolver
        known = {name for name, _ in resolver.known}
        for one in batch:
            if not one.token:
                known.discard(one.account)
            elif one.account not in known and 0 < resolver.accounts_max <= len(known):
                refused[one.ticket] = FULL
            elif why := self._unfit(one):
                refused[one.ticket] = why
            else:
                known.add(one.account)
        return refused

    def _unfit(self, one: ClaimsChange) -> str:
        found = resolve(self._owner.options.operator, [(one.account, one.token)], self._now_s)
        try:
            self._owner.try_accounts(found.accounts)
        except ConfigError as error:
            return str(error)
        return ""

    def _store(self, resolver: ResolverOptions, files: Sequence[tuple[str, str]]) -> list[str]:
        directory = Path(resolver.directory)
        errors = jwt_directory.carry_out(directory, files, keeps_deleted=resolver.keeps_deleted)
        for error in dict.fromkeys(filter(None, errors)):
            self._log.line(LogLevel.ERROR, f"The JWT of an account is not stored: {error}")
        return errors

    def _take(self, known: Tokens) -> None:
        """Have these JWTs count; nobody notices where nothing has changed by it."""
        options = self._owner.options
        operator = options.operator
        if known != operator.resolver.known:
            operator = replace(operator, resolver=replace(operator.resolver, known=known))
        before = {one.name: one for one in options.accounts}
        found = resolve(operator, known, self._now_s, before)
        self._tell(found)
        accounts = _kept(before, found.accounts)
        if operator is not options.operator or accounts != options.accounts:
            self._owner.take_accounts(operator, accounts)
        self._plan()

    def _tell(self, found: ResolvedAccounts) -> None:
        for note in found.notes:
            if note not in self._told:
                self._log.line(LogLevel.WARNING, note)
        self._told = set(found.notes)

    # Time

    def _plan(self) -> None:
        """Look again when the next JWT begins or ceases to count."""
        self.end()
        tokens = [token for _, token in self._resolver.known]
        due_s = next_change_s(tokens, self._now_s)
        if due_s:
            delay_s = due_s - self._wall_ns() / SECOND_NS
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(max(delay_s, 0), LOOK_AFTER_S_MAX), self.look)

    def look(self) -> None:
        """The time may have come."""
        self._timer = None
        self._take(self._resolver.known)


def _kept(
    before: Mapping[str, AccountOptions], now: tuple[AccountOptions, ...]
) -> tuple[AccountOptions, ...]:
    """Those of now, as the objects that they were where they are the same: who compares them later
    need not look into them."""
    found: list[AccountOptions] = []
    for one in now:
        known = before.get(one.name)
        found.append(known if known is not None and known == one else one)
    return tuple(found)
