"""The options tree: frozen, slotted, with defaults that promise what the broker promises."""

import dataclasses

import pytest

import jsctl.broker.options as module
from jsctl.broker.options import AccountOptions, Options, SyncMode, UserOptions


def kinds() -> list[type]:
    found = [value for value in vars(module).values() if dataclasses.is_dataclass(value)]
    return [kind for kind in found if isinstance(kind, type)]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: str(kind.__name__))
def test_all_parts_are_frozen_and_have_defaults(kind: type) -> None:
    made = kind()
    assert hash(made) == hash(kind())
    assert not hasattr(made, "__dict__")


def test_acknowledged_means_durable_by_default() -> None:
    assert Options().jetstream.sync is SyncMode.ALWAYS


def test_users_of_the_system_account_alone_do_not_lock_others_out() -> None:
    users = (UserOptions(name="s", password="s"),)
    system = AccountOptions(name="$SYS", users=users)
    assert not Options(accounts=(system,)).auth_required
    other = AccountOptions(name="A", users=users)
    assert Options(accounts=(other,)).auth_required
    assert Options(accounts=(system, other)).all_users == users + users
