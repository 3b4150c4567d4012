"""`nsc://Operator/Account/User`: credentials of a user in the store of `nsc` or `nats`.

Where that is, is looked up as `nsc` does: in the URL's own query, in its configuration, else where
both keep it by default. Credentials that `nsc` wrote are taken as they are; others are made from
the user's JWT and seed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, unquote

from jsctl.auth.store import Store, check_name, data_home
from jsctl.auth.token import credentials
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.files import read_text

SCHEME = "nsc://"


def credentials_of(url: str, environ: Mapping[str, str]) -> str:
    """The text of a credentials file. Raises UsageError for the URL and NotFound for a name."""
    path, _, query = url[len(SCHEME) :].partition("?")
    names = [unquote(part) for part in path.split("/")]
    if not url.lower().startswith(SCHEME) or len(names) != 3 or not all(names):
        raise UsageError(f"invalid nsc url {url}: expecting nsc://Operator/Account/User")
    operator, account, user = (
        check_name(name, what)
        for name, what in zip(names, ("operator", "account", "user"), strict=True)
    )
    store = _store(query, environ)
    written = store.keys / "creds" / operator / account / f"{user}.creds"
    if written.is_file():
        return read_text(written)
    found = next((one for one in store.load() if operator in (one.name, one.subject)), None)
    if found is None:
        raise NotFound(f"unknown operator: {operator}", hints=(f"looked for it in {store.stores}",))
    owner = found.account(account)
    if owner is None:
        raise NotFound(f"unknown Account: {account}")
    entity = owner.user(user)
    if entity is None:
        raise NotFound(f"user {user} not found in account {account}")
    return credentials(entity.token, entity.key)


def _store(query: str, environ: Mapping[str, str]) -> Store:
    given = {key.lower(): values[-1] for key, values in parse_qs(query).items()}
    home = data_home(environ)
    stores = given.get("store") or _configured(environ) or str(home / "stores")
    keys = given.get("keystore") or environ.get("NKEYS_PATH") or str(home / "keys")
    return Store(Path(stores).expanduser(), Path(keys).expanduser())


def _configured(environ: Mapping[str, str]) -> str:
    """The root of the stores that `nsc` was told to use; empty if it was not."""
    config = environ.get("XDG_CONFIG_HOME")
    homes = [
        Path(environ["NSC_HOME"]) if environ.get("NSC_HOME") else None,
        (Path(config) if config else Path.home() / ".config") / "nats" / "nsc",
        Path.home() / ".nsc",
    ]
    for home in homes:
        path = home / "nsc.json" if home else None
        if path is None or not path.is_file():
            continue
        try:
            document = json.loads(read_text(path))
        except (ValueError, RecursionError):
            raise JsctlError(f"{path} is not JSON") from None
        root = document.get("store_root") if isinstance(document, dict) else None
        return str(root) if isinstance(root, str) else ""
    return ""
