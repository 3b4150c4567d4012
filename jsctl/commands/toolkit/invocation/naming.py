"""Consent to what cannot be taken back: the name of what it concerns, typed."""

from jsctl.commands.toolkit.invocation.call import Call


def confirm_by_name(call: Call, kind: str, name: str) -> bool:
    """True with `--force`, or when the name was typed. Raises NeedsConfirmation without a terminal
    and Aborted when another name is typed again and again."""
    if call.flag("force"):
        return True

    def check(answer: str) -> bool:
        if answer and answer != name:
            raise ValueError(f"type {name}, or nothing to cancel")
        return answer == name

    question = f"Type the name of the {kind} to go on"
    return call.prompts.ask(question, check=check, prefix="could not obtain confirmation")
