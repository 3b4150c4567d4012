"""`auth user credential`: what a user connects with, in a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jsctl.auth.entities import AccountEntity, Issuer, UserEntity
from jsctl.auth.token import credentials
from jsctl.commands.auth.selecting import Auth, now_s
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError, NotFound, sentence_of
from jsctl.files import SECRET_MODE, drafted, write_whole
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
    _write(auth.issuer, account, user, path, expire_ns=call.duration("expire"))
    call.output.print(f"Wrote credential for {safe(user.claims.head.name)} to {path}")


@contextmanager
def credential_beside(path: Path | None, user: UserEntity) -> Iterator[None]:
    """Within it the user is stored. The file takes its place if that went well, and where it
    cannot be written nothing is stored. Raises JsctlError."""
    if path is None:
        yield
        return
    try:
        with drafted(path, SECRET_MODE) as file:
            file.write(credentials(user.token, user.key).encode())
            yield
    except OSError as error:
        raise JsctlError(sentence_of(error, path)) from None


def check_free(path: Path, *, force: bool) -> None:
    """Raises Conflict for a file that is there, unless it may be overwritten."""
    if path.exists() and not force:
        raise Conflict(f"file {path} already exist", hints=("--force overwrites it",))


def _write(
    issuer: Issuer, account: AccountEntity, user: UserEntity, path: Path, *, expire_ns: int
) -> None:
    """Writes the file, readable by its owner only. Raises JsctlError."""
    token = user.token
    if expire_ns > 0:
        passing = UserEntity(user.name, user.key, user.token, user.claims)
        expires_s = now_s() + expire_ns // SECOND_NS
        issuer.change_user(account, passing, user.claims.nats, expires_s=expires_s)
        token = passing.token
    write_whole(path, credentials(token, user.key))
