"""Accounts of JWTs that are stored and then count: what is refused, and what time brings."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path

from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.broker.conf.jwt_directory import read_all
from jsctl.broker.errors import ConfigError
from jsctl.broker.login_options.operators import OperatorOptions, ResolverKind, ResolverOptions
from jsctl.broker.options import AccountOptions, LogOptions, Options
from jsctl.broker.server.account_keeper import AccountKeeper
from jsctl.broker.server.logfile import ServerLog
from jsctl.broker.turn import ClaimsChange
from jsctl.dataclass import replace
from tests.support.resolver_world import ResolverWorld

WORLD = ResolverWorld()
NOW_S = 2_000_000_000


class OwnerOfAccounts:
    """A server without a node."""

    def __init__(self, resolver: ResolverOptions) -> None:
        known = ((WORLD.system.public, WORLD.system_token),)
        resolver = replace(resolver, known=known, preload=known)
        operator = OperatorOptions(
            keys=(WORLD.pair.public,), system_account=WORLD.system.public, resolver=resolver
        )
        self.options = Options(operator=operator)
        self.told: dict[int, str] = {}
        self.unfit = ""
        self.taken = 0
        self._work: asyncio.Task[None] | None = None

    def try_accounts(self, accounts: tuple[AccountOptions, ...]) -> None:
        if any(one.name == self.unfit for one in accounts):
            raise ConfigError("it would not work")

    def take_accounts(
        self, operator: OperatorOptions, accounts: tuple[AccountOptions, ...]
    ) -> None:
        self.options = replace(self.options, operator=operator, accounts=accounts)
        self.taken += 1

    def begin(self, work: Coroutine[None, None, None]) -> None:
        self._work = asyncio.get_running_loop().create_task(work)

    def changed(self, told: list[tuple[int, str]]) -> None:
        self.told |= dict(told)

    async def done(self) -> dict[int, str]:
        """What came of all changes."""
        assert self._work is not None
        await self._work
        told, self.told = self.told, {}
        return told

    @property
    def names(self) -> set[str]:
        """Of the accounts that count."""
        return {one.name for one in self.options.accounts} - {WORLD.system.public}


def keeper_of(owner: OwnerOfAccounts, now_s: list[int] | None = None) -> AccountKeeper:
    """One that begins; the time is what `now_s` says last."""
    times = now_s or [NOW_S]
    made = AccountKeeper(owner, ServerLog(LogOptions()), lambda: times[-1] * 1_000_000_000)
    made.begin()
    return made


def in_files(directory: Path, accounts_max: int = 0) -> ResolverOptions:
    """A resolver of type full."""
    return ResolverOptions(
        ResolverKind.FULL, str(directory), may_delete=True, accounts_max=accounts_max
    )


def keys(count: int) -> list[KeyPair]:
    """Of new accounts."""
    return [generate(KeyKind.ACCOUNT) for _ in range(count)]


async def test_a_batch_is_stored_and_then_counts(tmp_path: Path) -> None:
    owner = OwnerOfAccounts(in_files(tmp_path))
    keeper = keeper_of(owner)
    assert dict(read_all(tmp_path)) == {WORLD.system.public: WORLD.system_token}
    first, second, third = keys(3)
    old, new = WORLD.account(first, name="old"), WORLD.account(first, name="new")
    keeper.take([ClaimsChange(1, first.public, old), ClaimsChange(2, first.public, new)])
    keeper.take([ClaimsChange(3, second.public, WORLD.account(second))])
    keeper.take([ClaimsChange(4, second.public, ""), ClaimsChange(5, third.public, "")])
    assert await owner.done() == dict.fromkeys(range(1, 6), "")
    assert owner.names == {first.public}
    assert dict(read_all(tmp_path))[first.public] == new
    assert dict(owner.options.operator.resolver.known)[first.public] == new
    before = owner.taken
    keeper.take([ClaimsChange(6, first.public, new)])
    assert await owner.done() == {6: ""}
    assert owner.taken == before, "nothing has changed"
    keeper.end()


async def test_what_has_no_room_or_would_not_work_is_refused(tmp_path: Path) -> None:
    owner = OwnerOfAccounts(in_files(tmp_path, accounts_max=2))
    keeper = keeper_of(owner)
    first, second, third = keys(3)
    owner.unfit = first.public
    tokens = [(one.public, WORLD.account(one)) for one in (first, second, third)]
    keeper.take([ClaimsChange(n, *one) for n, one in enumerate(tokens)])
    assert await owner.done() == {0: "it would not work", 1: "", 2: "jwt store is full"}
    assert owner.names == {second.public}
    keeper.take([ClaimsChange(4, second.public, ""), ClaimsChange(5, *tokens[2])])
    assert await owner.done() == {4: "", 5: ""}
    assert owner.names == {third.public}
    assert {name for name, _ in read_all(tmp_path)} == {WORLD.system.public, third.public}
    keeper.end()


async def test_what_cannot_be_stored_does_not_count(tmp_path: Path) -> None:
    place = tmp_path / "jwt"
    place.mkdir()
    owner = OwnerOfAccounts(in_files(place))
    keeper = keeper_of(owner)
    (account,) = keys(1)
    (place / f"{WORLD.system.public}.jwt").unlink()
    place.rmdir()
    keeper.take([ClaimsChange(1, account.public, WORLD.account(account))])
    assert "No such file" in (await owner.done())[1]
    assert not owner.names
    keeper.end()


async def test_nothing_is_stored_in_memory() -> None:
    owner = OwnerOfAccounts(ResolverOptions())
    keeper = keeper_of(owner)
    (account,) = keys(1)
    keeper.take([ClaimsChange(1, account.public, WORLD.account(account))])
    assert await owner.done() == {1: ""}
    assert owner.names == {account.public}
    keeper.end()


async def test_time_ends_and_begins_accounts() -> None:
    owner, now_s = OwnerOfAccounts(ResolverOptions()), [NOW_S]
    keeper = keeper_of(owner, now_s)
    ends, stays = keys(2)
    keeper.take(
        [
            ClaimsChange(1, ends.public, WORLD.account(ends, expires_s=NOW_S + 60)),
            ClaimsChange(2, stays.public, WORLD.account(stays, expires_s=NOW_S + 90_000)),
        ]
    )
    await owner.done()
    assert owner.names == {ends.public, stays.public}
    now_s.append(NOW_S + 61)
    keeper.look()
    assert owner.names == {stays.public}
    keeper.look()
    assert owner.taken == 2, "nothing is taken where nothing has changed"
    keeper.end()
