"""An operator with everything it has as one document, secrets included, and back."""

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.auth.claims import Account, Operator, User
from jsctl.auth.entities import AccountEntity, OperatorEntity, UserEntity
from jsctl.auth.keys import KeyPair, KeyProblem, from_public, from_text
from jsctl.auth.store import check_name
from jsctl.auth.token import TokenProblem, read_as
from jsctl.errors import JsctlError


def operator_document(operator: OperatorEntity) -> dict[str, object]:
    """The document that `nats auth operator backup` writes."""
    return {
        "name": operator.name,
        "key": _key(operator.key),
        "token": operator.token,
        "signingKeys": _keys(operator.signing_keys),
        "accounts": [account_document(one) for one in operator.accounts] or None,
    }


def account_document(account: AccountEntity) -> dict[str, object]:
    """An account in it."""
    return {
        "name": account.name,
        "key": _key(account.key),
        "token": account.token,
        "signingKeys": _keys(account.signing_keys),
        "users": [user_document(one) for one in account.users] or None,
    }


def user_document(user: UserEntity) -> dict[str, object]:
    """A user in it."""
    return {"name": user.name, "key": _key(user.key), "token": user.token}


def _key(pair: KeyPair) -> dict[str, object]:
    return {"key": pair.seed}


def _keys(pairs: list[KeyPair]) -> list[dict[str, object]] | None:
    return [_key(pair) for pair in pairs] or None


def operator_of(text: bytes) -> OperatorEntity:
    """The operator that a document holds, ready to be stored. Raises JsctlError.

    Accounts and users have the names of their JWTs.
    """
    try:
        return _operator(jsontext.parse_object(text))
    except (DecodeError, TokenProblem, KeyProblem, TypeError) as error:
        raise JsctlError(f"unmarshal failed: {error}") from None


def _operator(document: dict[str, object]) -> OperatorEntity:
    token = _text(document, "token")
    claims = read_as(Operator, token)
    name = check_name(_text(document, "name"), "operator")
    key = _pair(document.get("key"), claims.head.sub)
    found = OperatorEntity(name, key, token, claims, modified=True)
    found.signing_keys = _pairs(document.get("signingKeys"))
    found.added_keys = [key, *found.signing_keys]
    for one in _list(document.get("accounts")):
        found.accounts.append(_account(one, found))
    found.added_keys = [pair for pair in found.added_keys if pair.seed]
    return found


def _account(document: dict[str, object], operator: OperatorEntity) -> AccountEntity:
    token = _text(document, "token")
    claims = read_as(Account, token)
    name = check_name(claims.head.name, "account")
    key = _pair(document.get("key"), claims.head.sub)
    account = AccountEntity(name, key, token, claims, modified=True)
    account.signing_keys = _pairs(document.get("signingKeys"))
    operator.added_keys += [key, *account.signing_keys]
    for one in _list(document.get("users")):
        user_token = _text(one, "token")
        user = read_as(User, user_token)
        user_name = check_name(user.head.name, "user")
        user_key = _pair(one.get("key"), user.head.sub)
        account.users.append(UserEntity(user_name, user_key, user_token, user, modified=True))
        operator.added_keys.append(user_key)
    return account


def _text(document: dict[str, object], name: str) -> str:
    value = document.get(name, "")
    if not isinstance(value, str):
        raise TypeError(f"the {name} is no text")
    return value


def _list(value: object) -> list[dict[str, object]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise TypeError("a list of objects is something else")
    return value


def _pairs(value: object) -> list[KeyPair]:
    return [_pair(one, "") for one in _list(value)]


def _pair(value: object, public: str) -> KeyPair:
    """A pair from its seed, which has to be that of the claims; without one only the public key."""
    if value is not None and not isinstance(value, dict):
        raise TypeError("a key is something else")
    seed = _text(value or {}, "key")
    if not seed:
        return from_public(public)
    pair = from_text(seed)
    if public and pair.public != public:
        raise KeyProblem(f"the seed of {pair.public} does not belong to {public}")
    return pair
