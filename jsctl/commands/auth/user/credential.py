"""`auth user credential`: what a user connects with, in a file."""

from pathlib import Path

from jsctl.auth.entities import AccountEntity, Issuer, UserEntity
from jsctl.auth.token import credentials
from jsctl.commands.auth.selecting import Auth, now_s
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, NotFound
from jsctl.files import write_whole
from jsctl.render.table import safe

SECOND_NS = 1_000_000_000


def credential(call: Call) -> None:
    """The file; with an expiry its JWT is another one than that of the store."""
    if not call.text("file"):
        raise NotFound("open : no such file or directory")
    path = Path(call.text("file"))
    check_free(path, force=call.flag("force"))
    auth = Auth(call)
    _, account = auth.account()
    user = auth.user(account, "user not found")
    write_credential(auth.issuer, account, user, path, expire_ns=call.duration("expire"))
    call.output.print(f"Wrote credential for {safe(user.claims.head.name)} to {path}")


def check_free(path: Path, *, force: bool) -> None:
    """Raises Conflict for a file that is there, unless it may be overwritten."""
    if path.exists() and not force:
        raise Conflict(f"file {path} already exist", hints=("--force overwrites it",))


def write_credential(
    issuer: Issuer, account: AccountEntity, user: UserEntity, path: Path, *, expire_ns: int = 0
) -> None:
    """Writes the file, readable by its owner only. Raises JsctlError."""
    token = user.token
    if expire_ns > 0:
        passing = UserEntity(user.name, user.key, user.token, user.claims)
        expires_s = now_s() + expire_ns // SECOND_NS
        issuer.change_user(account, passing, user.claims.nats, expires_s=expires_s)
        token = passing.token
    write_whole(path, credentials(token, user.key))
