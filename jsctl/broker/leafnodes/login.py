"""Who a leaf node is: what its CONNECT says against the `leafnodes` block, or against the users.

Where the block has an `authorization`, that alone counts; else whoever may log in to the server may
do so as a leaf node.
"""

from jsctl.broker import nkey
from jsctl.broker.accounts.accounts import Account, Accounts
from jsctl.broker.accounts.auth import authenticate, measured
from jsctl.broker.accounts.identity import (
    Check,
    ClientIdentity,
    Credentials,
    Surroundings,
    is_signed,
)
from jsctl.broker.leafnode_options import LeafLogin

CONNECTION_TYPE = "LEAFNODE"


def identify(
    login: LeafLogin, accounts: Accounts, given: Credentials, nonce: str, seen: Surroundings
) -> ClientIdentity | Check | None:
    """Find out who a leaf node is; None means that it has to go."""
    if login.user:
        if given.user != login.user:
            return None
        return _as(accounts, login.account, login.user, login.password, given)
    if login.nkey:
        public = nkey.decode(login.nkey, nkey.KeyKind.USER)
        account = _account(accounts, login.account)
        if account is None or public is None or given.nkey != login.nkey:
            return None
        signed = is_signed(public, given.signature, nonce.encode())
        return ClientIdentity(account, login.nkey, None) if signed else None
    if login.users:
        user = next((one for one in login.users if one.name == given.user), None)
        if user is None:
            return None
        return _as(accounts, user.account, user.name, user.password, given)
    kind = CONNECTION_TYPE
    return authenticate(accounts.logins, given, nonce.encode(), connection_type=kind, seen=seen)


def _as(
    accounts: Accounts, account: str, user: str, password: str, given: Credentials
) -> ClientIdentity | Check | None:
    found = _account(accounts, account)
    if found is None:
        return None
    proof = password.encode()
    return measured(given.password, proof, ClientIdentity(found, user, None, proof))


def _account(accounts: Accounts, name: str) -> Account | None:
    return accounts.get(name) if name else accounts.default
