"""`auth operator backup` and `restore`: an operator with all its secrets in one file."""

import base64
import binascii
from pathlib import Path

from jsctl.auth.export import operator_document, operator_of
from jsctl.auth.keys import KeyKind, KeyPair, KeyProblem, from_seed
from jsctl.auth.store import check_name
from jsctl.commands.auth.operator.show import show_operator
from jsctl.commands.auth.reading import read_key_file
from jsctl.commands.auth.selecting import Auth
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError, UsageError
from jsctl.files import read_bytes, write_whole
from jsctl.render.formats import as_json


def backup(call: Call) -> None:
    """Everything of an operator into a file, encrypted with a key."""
    operator = Auth(call).operator(call.text("name"))
    content = as_json(operator_document(operator)).encode()
    if call.text("key"):
        pair = _curve(call)
        content = base64.b64encode(pair.seal(content, pair.public))
    output = call.text("output")
    write_whole(Path(output), content)
    call.output.print(f"Wrote backup for {operator.name} to {output}")
    if not call.text("key"):
        call.output.print()
        call.output.print("WARNING: The output file is unencrypted and contains secrets,")
        call.output.print("consider encrypting it with 'jsctl auth nkey seal'")


def _curve(call: Call) -> KeyPair:
    pair = from_seed(read_key_file(call.text("key")))
    if pair.kind is not KeyKind.CURVE:
        raise UsageError("invalid public key provided")
    return pair


def restore(call: Call) -> None:
    """An operator from such a file, under its own name."""
    auth = Auth(call)
    name = check_name(call.text("name"), "operator")
    if auth.find(name):
        raise Conflict(f"operator {name} already exist")
    content = read_bytes(Path(call.text("input")))
    if call.text("key"):
        content = _opened(call, content)
    operator = operator_of(content)
    if operator.name != name:
        raise UsageError(
            f"the backup is of operator {operator.name}",
            hints=("its JWT has its name: restore it under that one",),
        )
    auth.store.save(operator)
    show_operator(call, operator)


def _opened(call: Call, content: bytes) -> bytes:
    pair = _curve(call)
    try:
        return pair.open(base64.b64decode(content, validate=True), pair.public)
    except binascii.Error:
        raise JsctlError("open failed: the backup is not encrypted") from None
    except KeyProblem as error:
        raise JsctlError(f"open failed: {error}") from None
