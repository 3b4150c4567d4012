"""Names in JWTs of somebody else are shown, and never sent to the terminal as they are."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jsctl.auth.claims import Account, Body, Export, Import, Info, UserScope, WeightedMapping
from jsctl.auth.entities import Entity, Issuer
from jsctl.auth.keys import KeyPair
from jsctl.auth.store import Store
from jsctl.auth.token import sign
from tests.commands.conftest import Result

Run = Callable[..., Result]
NAME = "\x1b[31mX\x07\r\n\u202e"
NOW_S = 1_700_000_000
LINES = (
    "auth operator info",
    "auth operator list",
    "auth account info A",
    "auth account ls",
    "auth account exports ls A",
    "auth account exports info x A",
    "auth account imports ls A",
    "auth account keys ls A",
    "auth account keys info A x",
    "auth account mappings ls A",
    "auth account mappings info A x",
    "auth account mappings rm A x",
    "auth user ls A",
    "auth user ls A --names",
    "auth user info u A",
    "auth user info x A",
    f"auth user credential {os.devnull} u A -f",
)


def traded(nats: Account, public: str) -> Account:
    return replace(
        nats,
        exports=(Export(NAME, f"s{NAME}", "service", info=Info(NAME)),),
        imports=(Import(NAME, f"t{NAME}", public, local_subject=f"l{NAME}", type_="stream"),),
        mappings={f"m{NAME}": (WeightedMapping(f"n{NAME}", 1, NAME),)},
        info=Info(NAME),
        generic=replace(nats.generic, tags=(NAME,)),
    )


def renamed(entity: Entity[Body], pair: KeyPair) -> None:
    claims = replace(entity.claims, head=replace(entity.claims.head, name=NAME))
    entity.token, entity.claims = sign(claims, pair, NOW_S)


def test_control_characters_are_made_visible(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = Issuer(lambda: NOW_S)
    operator = issuer.new_operator("OP")
    account = issuer.new_account(operator, "A")
    user = issuer.new_user(operator, account, "u")
    issuer.new_account_key(operator, account, UserScope(role=NAME, description=NAME))
    traded_claims = traded(account.claims.nats, account.subject)
    issuer.change_account(operator, account, traded_claims)
    renamed(user, account.key)  # type: ignore[arg-type] # of one kind of claims
    renamed(account, operator.key)  # type: ignore[arg-type]
    renamed(operator, operator.key)  # type: ignore[arg-type]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    place = tmp_path / "nats" / "nsc"
    Store(place / "stores", place / "keys").save(operator)
    decode = [f"jwt decode {path}" for path in place.rglob("*.jwt")]
    assert len(decode) == 3
    for line in (*LINES, *decode):
        done = cli(*line.split())
        assert not set("\x1b\x07\r\u202e") & set(done.out + done.err), line
        assert "Traceback" not in done.err, line


@pytest.mark.parametrize(
    "name", ["../x", "/x", "..", ".", "a/b", "a\\b", "a\nb", "\x1b[31m", " ", "x" * 201]
)
@pytest.mark.parametrize(
    "line",
    [
        "auth operator add {}",
        "auth operator restore {} {backup}",
        "auth account add {} --defaults",
        "auth user add {} A --defaults",
    ],
)
def test_nothing_is_written_for_a_name_that_is_no_files(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, name: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "inner" / "data"))
    backup = tmp_path / "backup"
    for made in (
        "auth operator add OP",
        "auth account add A --defaults",
        f"auth operator backup OP {backup}",
    ):
        assert cli(*made.split()).code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    words = [name if word == "{}" else word.format(backup=backup) for word in line.split()]
    done = cli(*words)
    assert (done.code, "name" in done.err) == (1, True)
    assert done.err.count("\n") == 1
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before
