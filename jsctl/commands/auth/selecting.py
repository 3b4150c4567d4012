"""Which operator and which account a command is about, and the store that it is in."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from jsctl.auth.claims import UserScope
from jsctl.auth.entities import AccountEntity, Issuer, OperatorEntity, UserEntity
from jsctl.auth.store import Store
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, NeedsConfirmation, NotFound
from jsctl.files import make_folder, read_text, write_whole
from jsctl.render.table import safe

SELECTED = "select_operator"


def now_s() -> int:
    """Seconds of the Unix epoch."""
    return time.time_ns() // 1_000_000_000


class Auth:
    """The store as it was when the command began, and who signs."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.store = Store.default(call.environ)
        self.operators = self.store.load()
        self.issuer = Issuer(now_s)

    def find(self, name: str) -> OperatorEntity | None:
        """An operator by its name."""
        return next((one for one in self.operators if one.name == name), None)

    def operator(self, name: str = "", *, use_selected: bool = True) -> OperatorEntity:
        """The named operator, or the selected one, or the only one, or one that is picked.

        Raises NotFound for a name that there is none of.
        """
        if name:
            return self._named(name)
        found = self.find(selected_operator(self.call)) if use_selected else None
        if found is not None:
            return found
        if len(self.operators) == 1:
            return self.operators[0]
        if not self.call.prompts.possible:
            raise NeedsConfirmation(
                "cannot pick an Operator without a terminal and no operator name supplied"
            )
        names = sorted(one.name for one in self.operators)
        if not names:
            raise NotFound("no operators found")
        return self._named(self.call.prompts.choose("Select an Operator", names))

    def _named(self, name: str) -> OperatorEntity:
        found = self.find(name)
        if found is None:
            names = [one.name for one in self.operators]
            raise NotFound(f"unknown operator: {name}", hints=known_names(name, names))
        return found

    def account(self, name: str = "") -> tuple[OperatorEntity, AccountEntity]:
        """The account of the `account` argument, or one that is picked."""
        operator = self.operator(self.call.text("operator"))
        name = name or self.call.text("account")
        if name:
            return operator, account_of(operator, name)
        if not self.call.prompts.possible:
            raise NeedsConfirmation(
                "cannot pick an Account without a terminal and no Account name supplied"
            )
        names = sorted(one.name for one in operator.accounts)
        if not names:
            raise NotFound("no accounts found")
        picked = names[0] if len(names) == 1 else ""
        picked = picked or self.call.prompts.choose("Select an Account", names)
        return operator, account_of(operator, picked)

    def user(self, account: AccountEntity, missing: str) -> UserEntity:
        """The user of the `name` argument, or one that is picked; `missing` is the error."""
        name = self.call.text("name")
        if not name:
            if not account.users:
                raise NotFound(f"no users found in {account.name}")
            names = sorted(user.name for user in account.users)
            name = self.call.prompts.choose("Select a User", names)
        found = account.user(name)
        if found is None:
            names = [user.name for user in account.users]
            raise NotFound(missing.format(name=name), hints=known_names(name, names))
        return found


def account_of(operator: OperatorEntity, name: str) -> AccountEntity:
    """An account by name or key. Raises NotFound."""
    found = operator.account(name)
    if found is None:
        names = [one.name for one in operator.accounts]
        raise NotFound(f"unknown Account: {name}", hints=known_names(name, names))
    return found


def signing_key_of(
    call: Call, account: AccountEntity, choice: str, *, scoped_only: bool = False
) -> tuple[str, UserScope | None]:
    """A signing key by role or by itself, or one that is picked. Raises NotFound."""
    scopes = account.claims.nats.scopes
    of_role = [key for key, scope in scopes.items() if scope and scope.role == choice]
    if len(of_role) == 1:
        return of_role[0], scopes[of_role[0]]
    if choice in scopes and (scopes[choice] or not scoped_only):
        return choice, scopes[choice]
    if not scopes:
        raise NotFound("no signing keys found")
    if choice and not of_role:
        raise NotFound(
            f'no signing key has the role or public key "{choice}"',
            hints=known_names(choice, [scope.role for scope in scopes.values() if scope]),
        )
    named = {
        _described(key, scope): key for key, scope in scopes.items() if scope or not scoped_only
    }
    picked = named[call.prompts.choose("Select Signing Key", list(named))]
    return picked, scopes[picked]


def _described(key: str, scope: UserScope | None) -> str:
    if scope is None:
        return key
    about = f" ({scope.description})" if scope.description else ""
    return f"{key} - Scope {scope.role}{about}"


def known_names(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """A hint for a name that there is none of: those that are alike, or all."""
    from difflib import get_close_matches

    near = get_close_matches(name, names, 3)
    if near:
        return (f"did you mean {', '.join(map(safe, near))}?",)
    return (f"known: {', '.join(map(safe, sorted(names)[:20])) or 'none'}",)


def _settings_path(call: Call) -> Path:
    home = call.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "nats" / "cli" / "config.json"


def _settings(path: Path) -> dict[str, object]:
    """What the file of settings says, nothing if it is not there. Raises JsctlError."""
    try:
        document = json.loads(read_text(path)) if path.exists() else {}
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise JsctlError(f"could not parse configuration file: {path} is not a JSON object")
    return document


def selected_operator(call: Call) -> str:
    """The operator that `auth operator select` chose; empty if none."""
    try:
        return str(_settings(_settings_path(call)).get(SELECTED) or "")
    except (JsctlError, OSError):  # as if there were none; `select` tells what is wrong
        return ""


def select_operator(call: Call, name: str) -> None:
    """Remembers an operator as the default one."""
    path = _settings_path(call)
    make_folder(path.parent)
    document = {**_settings(path), SELECTED: name}
    write_whole(path, json.dumps(document, separators=(",", ":")))
