"""`plugins register`: a program that says what its commands are becomes a command of this one."""

import json
import os
import re
import subprocess
from pathlib import Path

from jsctl.api.jsontext import parse_object
from jsctl.commands import REGISTRY
from jsctl.commands.plugins.stored import folder_of_plugins, node_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError, UsageError
from jsctl.files import write_whole

NAME = re.compile(r"[a-z]+")
ANSWER_S = 30
"""A program that has not said by then what its commands are is none of this kind."""


def register(call: Call) -> None:
    """Ask the program for its commands, and keep the answer."""
    print("WARNING: Plugins support is experimental and not officially supported\n", flush=True)
    name, command = call.text("name"), call.text("command")
    if not NAME.fullmatch(name):
        raise UsageError("plugins names must match ^[a-z]$")
    if any(name in (row.name, *row.aliases) for row in REGISTRY):
        raise Conflict(f"{name} is a command already, a plugin needs a name of its own")
    path = folder_of_plugins(os.environ) / f"{name}.json"
    if path.exists() and not call.flag("force"):
        raise Conflict(f"plugins {name} already registered, use --force to update")
    program = str(Path(command).absolute())
    text = _described(program, name)
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    write_whole(path, f'{{"cmd":{json.dumps(program)},"def":{text}}}')
    print(f"Plugin {name} using command {command} was added or updated")


def _described(program: str, name: str) -> str:
    """What a program says of itself. Raises JsctlError when that is no description of commands."""
    try:
        done = subprocess.run(
            [program, "--fisk-introspect"], capture_output=True, timeout=ANSWER_S, check=False
        )
    except OSError as error:
        raise JsctlError(f"{program}: {(error.strerror or str(error)).lower()}") from None
    except subprocess.TimeoutExpired:
        raise JsctlError(f"{Path(program).name} does not say what its commands are") from None
    if done.returncode:
        raise JsctlError(f"exit status {done.returncode}")
    try:
        document = parse_object(done.stdout)
        node_of(document, name)
    except ValueError:
        raise JsctlError(f"{Path(program).name} does not say what its commands are") from None
    return json.dumps(document, separators=(",", ":"))
