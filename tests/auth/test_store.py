"""The store of operators: what is read back is what was written, and damage is told."""

import shutil
from pathlib import Path

import pytest

from jsctl.auth.claims import UserScope
from jsctl.auth.entities import Issuer, OperatorEntity
from jsctl.auth.keys import KeyKind, generate
from jsctl.auth.store import Store, check_name
from jsctl.errors import JsctlError

NOW_S = 1_700_000_000


def made(issuer: Issuer) -> OperatorEntity:
    operator = issuer.new_operator("OP")
    account = issuer.new_account(operator, "APP")
    key = issuer.new_account_key(operator, account, UserScope(role="reader"))
    issuer.new_user(operator, account, "bob")
    issuer.new_user(operator, account, "sam", key.public)
    return operator


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "stores", tmp_path / "keys")


def test_what_was_saved_is_loaded(store: Store) -> None:
    operator = made(Issuer(lambda: NOW_S))
    store.save(operator)
    (found,) = store.load()
    account = found.accounts[0]
    assert (found.name, found.token, found.key) == ("OP", operator.token, operator.key)
    assert [user.name for user in account.users] == ["bob", "sam"]
    assert account.is_scoped(account.users[1]) and not account.is_scoped(account.users[0])
    assert account.users[1].claims.nats.empty
    assert account.users[0].key.seed.startswith("SU")
    before = {path: path.stat().st_mtime_ns for path in store.stores.rglob("*.jwt")}
    store.save(found)
    assert {path: path.stat().st_mtime_ns for path in store.stores.rglob("*.jwt")} == before


def test_claims_without_seeds_can_be_read_and_not_changed(store: Store) -> None:
    issuer = Issuer(lambda: NOW_S)
    store.save(made(issuer))
    for path in store.keys.rglob("*.nk"):
        path.unlink()
    (found,) = store.load()
    with pytest.raises(JsctlError, match="no private key available"):
        issuer.new_account(found, "OTHER")


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("stores/OP/OP.jwt", "nothing", "expected 3 chunks"),
        ("stores/OP/accounts/APP/APP.jwt", "a.b.c", "APP.jwt"),
        ("stores/OP/.nsc", "[]", "has no name"),
        ("stores/OP/.nsc", '{"name":"../x"}', "invalid operator name"),
    ],
)
def test_damage_names_its_file(store: Store, file: str, content: str, told: str) -> None:
    store.save(made(Issuer(lambda: NOW_S)))
    (store.stores.parent / file).write_text(content)
    with pytest.raises(JsctlError, match=told):
        store.load()


def test_a_seed_of_somebody_else_is_told(store: Store) -> None:
    operator = made(Issuer(lambda: NOW_S))
    store.save(operator)
    other = generate(KeyKind.OPERATOR)
    store.key_path(operator.subject).write_text(other.seed)
    with pytest.raises(JsctlError, match=other.public):
        store.load()


@pytest.mark.parametrize("place", ["stores", "stores/OP/accounts", "stores/OP/accounts/APP/users"])
def test_a_file_where_a_folder_should_be_is_told(store: Store, place: str) -> None:
    store.save(made(Issuer(lambda: NOW_S)))
    path = store.stores.parent / place
    shutil.rmtree(path)
    path.touch()
    with pytest.raises(JsctlError, match=f"open {path}: not a directory"):
        store.load()


def test_a_folder_where_a_seed_should_be_is_told(store: Store) -> None:
    operator = made(Issuer(lambda: NOW_S))
    store.save(operator)
    path = store.key_path(operator.subject)
    path.unlink()
    path.mkdir()
    with pytest.raises(JsctlError, match="is a directory"):
        store.load()


def test_no_key_is_left_of_an_operator_that_has_no_place(store: Store) -> None:
    operator = made(Issuer(lambda: NOW_S))
    (store.stores / "OP" / "something").mkdir(parents=True)
    with pytest.raises(JsctlError, match='operator "OP" already exists'):
        store.save(operator)
    assert not store.keys.exists()


def test_what_was_never_finished_is_passed_over(store: Store) -> None:
    store.save(made(Issuer(lambda: NOW_S)))
    (store.stores / "HALF" / "accounts").mkdir(parents=True)
    assert [one.name for one in store.load()] == ["OP"]


def test_a_store_that_cannot_be_written_keeps_what_it_had(store: Store) -> None:
    issuer = Issuer(lambda: NOW_S)
    store.save(made(issuer))
    (found,) = store.load()
    (store.stores / "OP" / "accounts" / "NEW").write_text("in the way")
    issuer.new_account(found, "NEW")
    with pytest.raises(JsctlError, match="NEW"):
        store.save(found)
    assert [one.name for one in store.load()[0].accounts] == ["APP"]
    assert not list(store.stores.parent.rglob("*.new"))


@pytest.mark.parametrize("name", ["", " ", ".", "..", "a/b", "a\\b", "a\nb", "x" * 300])
def test_names_that_are_no_files_are_refused(name: str) -> None:
    with pytest.raises(JsctlError, match="invalid operator name"):
        check_name(name, "operator")
