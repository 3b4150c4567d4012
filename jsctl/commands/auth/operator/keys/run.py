"""`auth operator keys`: signing keys of an operator."""

from dataclasses import replace

from jsctl.commands.auth.selecting import Auth
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NotFound, UsageError
from jsctl.render.column import Column

_COLUMNS: tuple[Column[str], ...] = (Column("key", "Key", str),)


def list_keys(call: Call) -> None:
    """Their public keys, one a line."""
    keys = Auth(call).operator(call.text("name")).claims.nats.signing_keys
    if call.output.form != "table":
        call.output.table(keys, _COLUMNS, "Signing Keys")
        return
    for key in keys:
        call.output.print(key)


def add(call: Call) -> None:
    """A new one; its public key is printed."""
    auth = Auth(call)
    operator = auth.operator(call.text("name"))
    key = auth.issuer.new_operator_key(operator)
    auth.store.save(operator)
    call.output.tell(key.public, {"key": key.public})


def remove(call: Call) -> None:
    """Takes one away; what it signed is not valid any more."""
    public = call.text("key")
    if not public:
        raise UsageError("public key is required")
    auth = Auth(call)
    operator = auth.operator(call.text("name"))
    if not call.confirm(f"Really remove the signing key {public}", prefix=""):
        return
    nats = operator.claims.nats
    if public not in nats.signing_keys:
        raise NotFound("signing key was not found")
    left = tuple(key for key in nats.signing_keys if key != public)
    auth.issuer.change_operator(operator, replace(nats, signing_keys=left))
    operator.deleted_keys.append(public)
    auth.store.save(operator)
    call.output.tell("Signing key removed", {"removed": public})
