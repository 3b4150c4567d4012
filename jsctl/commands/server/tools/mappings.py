"""`server mappings`: what a mapping of subjects does, by the server's own rules."""

import re
from collections.abc import Callable

from jsctl.broker.errors import ConfigError
from jsctl.broker.subject.transforms import Transform, compile_transform
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

_TOKEN = re.compile(r"(?:\{\{.*?\}\}|[^.])+", re.DOTALL)
_FUNCTION = re.compile(r"\{\{\s*(\w+)\s*\((.*)\)\s*\}\}", re.DOTALL)
_ARITY = {"wildcard": 1, "left": 2, "right": 2, "split": 2}
_ARITY |= {f"{one}from{side}": 2 for one in ("split", "slice") for side in ("left", "right")}
NO_MATCH = "Error: no matching transforms available\n"


def mappings(call: Call) -> None:
    """Maps a subject, or those that are typed one after the other."""
    source = call.text("source") or _asked(
        call, "Source subject pattern", "The pattern matching source subjects"
    )
    destination = call.text("dest") or _asked(
        call,
        "Destination subject pattern",
        "The pattern matching describing the mapping to test",
    )
    transform = _compiled(source, destination)
    if subject := call.text("subject"):
        _show(call, transform, subject)
        return
    call.output.print("Enter subjects to test, empty subject terminates.\n")
    call.output.print("NOTE: This only tests mappings, it does not add them to the server\n")
    help_text = "Enter a subject that matching source and the mapping will be shown"
    while subject := call.prompts.ask("Subject", check=str, help_text=help_text, prefix=""):
        _show(call, transform, subject)


def _asked(call: Call, question: str, help_text: str) -> str:
    def required(text: str) -> str:
        if not text:
            raise ValueError("Value is required")
        return text

    check: Callable[[str], str] = required
    return call.prompts.ask(question, check=check, help_text=help_text, prefix="")


def _compiled(source: str, destination: str) -> Transform:
    tokens, targets = source.split("."), destination.split(".")
    if (tokens[-1] == ">") != (targets[-1] == ">") or "*" in targets or "" in tokens:
        raise UsageError("invalid subject")
    try:
        return compile_transform(source.encode(), destination.encode())
    except ConfigError as error:
        raise UsageError(_told(source, destination, str(error))) from None


def _told(source: str, destination: str, otherwise: str) -> str:
    """Which token of the destination cannot be used, and why."""
    heads = source.removesuffix(".>") if source != ">" else "all"
    for token in _TOKEN.findall(destination):
        try:
            compile_transform(heads.encode(), token.encode())
        except ConfigError as error:
            return f"invalid mapping destination: {_reason(token, error)}"
    return otherwise


def _reason(token: str, error: ConfigError) -> str:
    found = _FUNCTION.fullmatch(token)
    arguments = [one.strip() for one in found.group(2).split(",") if one.strip()] if found else []
    name = found.group(1).lower() if found else ""
    if "out of range" in error.reason:
        number = arguments[0] if arguments else token.lstrip("$")
        return f"wildcard index out of range in {token}: [{number}]"
    if name in _ARITY and len(arguments) < _ARITY[name]:
        return f"not enough arguments passed to the function in {token}"
    if name in _ARITY and len(arguments) > _ARITY[name]:
        return f"too many arguments passed to the function in {token}"
    if "unknown" in error.reason:
        return f"unknown function in {token}"
    return f"function argument is invalid or in the wrong format in {token}"


def _show(call: Call, transform: Transform, subject: str) -> None:
    mapped = transform.apply(subject.encode())
    if call.as_data:
        call.output.json({"subject": subject, "mapped": mapped.decode() if mapped else None})
        return
    call.output.print(NO_MATCH if mapped is None else mapped.decode())
    call.output.print()
