"""Users named as `nsc://Operator/Account/User`, wherever their store is."""

import json
from pathlib import Path

import pytest

from jsctl.auth.entities import Issuer
from jsctl.auth.nsc import credentials_of
from jsctl.auth.store import Store
from jsctl.auth.token import credentials
from jsctl.errors import JsctlError


@pytest.fixture
def made(tmp_path: Path) -> tuple[Store, str]:
    """A store, and the credentials of its one user."""
    store = Store(tmp_path / "data" / "nats" / "nsc" / "stores", tmp_path / "data/nats/nsc/keys")
    issuer = Issuer(lambda: 1_700_000_000)
    operator = issuer.new_operator("My Op")
    account = issuer.new_account(operator, "A")
    user = issuer.new_user(operator, account, "bob")
    store.save(operator)
    return store, credentials(user.token, user.key)


def test_the_default_store(made: tuple[Store, str], tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path)}
    assert credentials_of("nsc://My%20Op/A/bob", environ) == made[1]


def test_a_store_that_nsc_was_told_of(made: tuple[Store, str], tmp_path: Path) -> None:
    store, expected = made
    (tmp_path / "nsc.json").write_text(json.dumps({"store_root": str(store.stores)}))
    environ = {"NSC_HOME": str(tmp_path), "NKEYS_PATH": str(store.keys), "XDG_DATA_HOME": "/nope"}
    assert credentials_of("nsc://My Op/A/bob", environ) == expected


def test_a_store_in_the_url(made: tuple[Store, str]) -> None:
    store, expected = made
    url = f"nsc://My Op/A/bob?store={store.stores}&keystore={store.keys}"
    assert credentials_of(url, {"XDG_DATA_HOME": "/nope"}) == expected


def test_credentials_that_nsc_wrote_come_first(made: tuple[Store, str], tmp_path: Path) -> None:
    path = made[0].keys / "creds" / "My Op" / "A" / "bob.creds"
    path.parent.mkdir(parents=True)
    path.write_text("written")
    environ = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path)}
    assert credentials_of("nsc://My Op/A/bob", environ) == "written"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nsc://My Op/A/eve", "user eve not found in account A"),
        ("nsc://My Op/B/bob", "unknown Account: B"),
        ("nsc://Other/A/bob", "unknown operator: Other"),
        ("nsc://My Op/A", "expecting nsc://Operator/Account/User"),
        ("nsc://../A/b", "invalid operator name"),
    ],
)
def test_what_is_not_there_is_named(
    made: tuple[Store, str], tmp_path: Path, url: str, told: str
) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path)}
    with pytest.raises(JsctlError, match=told):
        credentials_of(url, environ)
