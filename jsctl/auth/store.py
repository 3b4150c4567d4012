"""The store of `nsc` and `nats`: a folder per operator, JWTs as files, seeds in a folder of keys.

    stores/OP/.nsc                        what the folder is
    stores/OP/OP.jwt
    stores/OP/accounts/A/A.jwt
    stores/OP/accounts/A/users/U.jwt
    keys/keys/U/AB/UAB....nk              a seed, below its kind and two letters
    keys/creds/OP/A/U.creds               credentials that `nsc` made

Keys are written before what they signed, and each file is whole or not there, so that a process
that ends anywhere in between leaves a store that all three programs can read.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from jsctl.auth.claims import Account, Body, Operator, User
from jsctl.auth.entities import AccountEntity, OperatorEntity, UserEntity
from jsctl.auth.keys import KeyPair, KeyProblem, from_public, from_seed
from jsctl.auth.token import Claims, TokenProblem, read_as
from jsctl.errors import JsctlError, sentence_of
from jsctl.files import make_folder, read_text, write_whole

MARK = ".nsc"
IGNORED = "# ignore all nk files \n**/*.nk\n\n# ignore all creds files\n**/*.creds\n"
NAME_BYTES_MAX = 200
ENTRIES_MAX = 100_000
"""Accounts or users in one folder: more are not read."""
B = TypeVar("B", bound=Body)


def data_home(environ: Mapping[str, str]) -> Path:
    """Where the `nats` tool keeps its store: `nats/nsc` below the user's data."""
    given = environ.get("XDG_DATA_HOME")
    return (Path(given) if given else Path.home() / ".local" / "share") / "nats" / "nsc"


def check_name(name: str, what: str) -> str:
    """The name without spaces around, if it can be a file's. Raises JsctlError."""
    name = name.strip()
    bad = not name or name in (".", "..") or set(name) & set("/\\\0") or not name.isprintable()
    if bad or len(name.encode()) > NAME_BYTES_MAX:
        raise JsctlError(f"invalid {what} name {name!r}: names are those of files in the store")
    return name


class Store:
    """Operators on disk; `stores` and `keys` are the two folders."""

    def __init__(self, stores: Path, keys: Path) -> None:
        self.stores = stores
        self.keys = keys

    @classmethod
    def default(cls, environ: Mapping[str, str]) -> "Store":
        """That of the `nats` tool."""
        home = data_home(environ)
        return cls(home / "stores", home / "keys")

    def load(self) -> list[OperatorEntity]:
        """All operators, by name. Raises JsctlError for a file that cannot be believed."""
        return [self._operator(folder) for folder in self._folders()]

    def _folders(self) -> list[Path]:
        """A folder that says it is a store; one without its mark was never finished."""
        return [one for one in _entries(self.stores) if _has_content(one / MARK)]

    def _operator(self, folder: Path) -> OperatorEntity:
        name = self._name_of(folder)
        path = folder / f"{name}.jwt"
        token, claims = _read(path, Operator)
        key = self._pair(claims.head.sub)
        found = OperatorEntity(name, key, token, claims, stored=True)
        found.signing_keys = self._pairs(claims.nats.signing_keys)
        for inner in _entries(folder / "accounts"):
            if (inner / f"{inner.name}.jwt").is_file():
                found.accounts.append(self._account(inner))
        return found

    @staticmethod
    def _name_of(folder: Path) -> str:
        try:
            document = json.loads(read_text(folder / MARK))
        except (ValueError, RecursionError):
            document = None
        name = document.get("name") if isinstance(document, dict) else None
        if not isinstance(name, str):
            raise JsctlError(f"error loading '.nsc' file: {folder / MARK} has no name of a store")
        return check_name(name, "operator")

    def _account(self, folder: Path) -> AccountEntity:
        token, claims = _read(folder / f"{folder.name}.jwt", Account)
        found = AccountEntity(folder.name, self._pair(claims.head.sub), token, claims)
        found.signing_keys = self._pairs(claims.nats.scopes)
        for path in _entries(folder / "users"):
            if path.suffix == ".jwt" and path.is_file():
                user_token, user = _read(path, User)
                pair = self._pair(user.head.sub)
                found.users.append(UserEntity(path.stem, pair, user_token, user))
        return found

    def _pairs(self, publics: Iterable[str]) -> list[KeyPair]:
        pairs = (self._pair(public) for public in publics)
        return [pair for pair in pairs if pair.seed]

    def _pair(self, public: str) -> KeyPair:
        """With its seed, if that is in the store. Raises JsctlError for a seed of another key."""
        pair = from_public(public)
        path = self.key_path(public)
        if not path.exists():
            return pair
        try:
            found = from_seed(read_text(path).strip())
        except KeyProblem as error:
            raise JsctlError(f"{path}: {error}") from None
        if found.public != public:
            raise JsctlError(f"{path} holds the seed of {found.public}")
        return found

    def key_path(self, public: str) -> Path:
        """The file of a key's seed."""
        return self.keys / "keys" / public[0] / public[1:3] / f"{public}.nk"

    def save(self, operator: OperatorEntity) -> None:
        """Writes what was changed. Raises JsctlError; what was there is still there then."""
        folder = self.stores / check_name(operator.name, "operator")
        if not operator.stored and _entries(folder):
            raise JsctlError(f'operator "{operator.name}" already exists in {self.stores}')
        for pair in operator.added_keys:
            self._store_key(pair)
        if not operator.stored:
            self._create(operator, folder)
        elif operator.modified:
            write_whole(folder / f"{operator.name}.jwt", operator.token)
        self._save_accounts(operator, folder)
        for public in operator.deleted_keys:
            self._remove_key(public)
        operator.stored, operator.modified = True, False
        operator.added_keys, operator.deleted_keys = [], []

    def _save_accounts(self, operator: OperatorEntity, folder: Path) -> None:
        for account in operator.accounts:
            self._save_account(account, folder / "accounts" / check_name(account.name, "account"))

    @staticmethod
    def _save_account(account: AccountEntity, folder: Path) -> None:
        if account.modified:
            make_folder(folder)
            write_whole(folder / f"{account.name}.jwt", account.token)
        for user in account.users:
            if user.modified:
                make_folder(folder / "users")
                name = check_name(user.name, "user")
                write_whole(folder / "users" / f"{name}.jwt", user.token)
                user.modified = False
        for user in account.removed:
            (folder / "users" / f"{user.name}.jwt").unlink(missing_ok=True)
        account.modified, account.removed = False, []

    def _create(self, operator: OperatorEntity, folder: Path) -> None:
        """The folder of a new operator, made beside the stores and moved there whole."""
        make_folder(self.stores)
        draft = self.stores.parent / f".{operator.name}.{os.getpid()}.new"
        try:
            make_folder(draft / "accounts")
            write_whole(draft / f"{operator.name}.jwt", operator.token)
            about = {"managed": False, "name": operator.name, "kind": "operator", "version": "1"}
            write_whole(draft / MARK, json.dumps(about, separators=(",", ":")))
            self._save_accounts(operator, draft)
            draft.replace(folder)
        except OSError as error:
            raise JsctlError(f"cannot write {folder}: {error.strerror}") from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _store_key(self, pair: KeyPair) -> None:
        """A seed is written once and never over another one."""
        for name in ("keys", "creds"):
            make_folder(self.keys / name)
        if not (self.keys / ".gitignore").exists():
            write_whole(self.keys / ".gitignore", IGNORED)
        path = self.key_path(pair.public)
        make_folder(path.parent)
        if not path.exists():
            write_whole(path, pair.seed)
        elif read_text(path).strip() != pair.seed:
            raise JsctlError(f"key {path} already exists and is different")

    def _remove_key(self, public: str) -> None:
        path = self.key_path(public)
        path.unlink(missing_ok=True)
        try:
            path.parent.rmdir()
        except OSError:
            return  # other keys are in it, or it never was


def _entries(folder: Path) -> list[Path]:
    """What is in a folder, sorted; nothing where there is none."""
    try:
        found = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise JsctlError(sentence_of(error, folder)) from None
    if len(found) > ENTRIES_MAX:
        raise JsctlError(f"{folder} has more than {ENTRIES_MAX} entries")
    return found


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _read(path: Path, kind: type[B]) -> tuple[str, Claims[B]]:
    token = read_text(path).strip()
    try:
        return token, read_as(kind, token)
    except TokenProblem as error:
        raise JsctlError(f"{path}: {error}") from None
