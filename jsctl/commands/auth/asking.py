"""Questions of the `auth` commands, and what they say where nobody can be asked."""

from jsctl.commands.toolkit.grammar.values import parse_size, parse_whole
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.prompts import NO_TERMINAL_CONFIRM
from jsctl.errors import NeedsConfirmation


def ask_text(call: Call, question: str, help_text: str) -> str:
    """A text that is not empty."""

    def required(text: str) -> str:
        if not text:
            raise ValueError("Value is required")
        return text

    return call.prompts.ask(question, check=required, help_text=help_text, prefix="")


def ask_number(call: Call, question: str, default: str, help_text: str) -> int:
    """A whole number."""
    _check(call)
    return call.prompts.ask(question, default=default, check=parse_whole, help_text=help_text)


def ask_bytes(call: Call, question: str, default: str, help_text: str, missing: str) -> int:
    """A size above zero; `missing` says why it has to be."""
    _check(call)

    def sized(text: str) -> int:
        found = parse_size(text)
        if found <= 0:
            raise ValueError(missing)
        return found

    return call.prompts.ask(question, default=default, check=sized, help_text=help_text)


def _check(call: Call) -> None:
    if not call.prompts.possible:
        raise NeedsConfirmation(
            NO_TERMINAL_CONFIRM, hints=("--defaults takes the values that are proposed",)
        )
