"""`errors edit` and `validate`: the list that servers are made from."""

import json
import shlex
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path

from jsctl.api.jsontext import of_people
from jsctl.commands.errors.documents import ErrorDescription, described, faults, load
from jsctl.commands.errors.run import code_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import save
from jsctl.errors import Aborted, JsctlError, NeedsConfirmation, UsageError

TRIES_MAX = 100


def validate(call: Call) -> None:
    """Says what is wrong with each error of a file."""
    path = call.text("file") or call.text("errors")
    if not path:
        raise UsageError("errors file is required")
    _validate(call, path)


def _validate(call: Call, path: str) -> None:
    found = load(path)
    wrong = [(one, sentences) for one in found if (sentences := faults(one))]
    for one, sentences in wrong:
        call.output.print(f"{one.error_code} failed: {', '.join(sentences)}")
    if wrong:
        raise JsctlError(f"{path} is invalid")
    call.output.print(f"Validated {len(found)} errors")


def edit(call: Call) -> None:
    """Changes an error in $EDITOR, or adds one with the next code."""
    path, code = call.text("file"), code_of(call.text("code") or "0")
    found = load(path)
    at = next((at for at, one in enumerate(found) if one.error_code == code), len(found))
    highest = max((one.error_code for one in found), default=0)
    old = found[at] if at < len(found) else ErrorDescription(error_code=highest + 1)
    found[at : at + 1] = [_edited(call, old)]
    save(Path(path), json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
    _validate(call, path)


def _edited(call: Call, old: ErrorDescription) -> ErrorDescription:
    """What the person makes of it, asked again until it is whole."""
    editor = call.environ.get("EDITOR", "")
    if not editor:
        raise UsageError("set EDITOR environment variable to your chosen editor")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "error.json"
        file.write_text(json.dumps(asdict(old), indent=2, ensure_ascii=False), encoding="utf-8")
        for _ in range(TRIES_MAX):
            if subprocess.run([*shlex.split(editor), str(file)], check=False).returncode:
                raise JsctlError(f"{editor} failed")
            try:
                new = described(of_people(file.read_text(encoding="utf-8")), "the error")
            except ValueError as error:
                raise JsctlError(f"the error is not JSON: {error}") from None
            sentences = faults(new)
            if not sentences:
                return new
            call.output.print(f"Invalid error specification: {', '.join(sentences)}")
            if not _again(call):
                break
    raise Aborted("aborted")


def _again(call: Call) -> bool:
    try:
        return call.prompts.confirm("Retry edit", default=True)
    except NeedsConfirmation:
        return False
