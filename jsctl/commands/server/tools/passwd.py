"""`server passwd`: bcrypt hashes for configurations."""

import secrets
import string

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NeedsConfirmation, UsageError

COSTS = (4, 31)
LENGTH_MIN = 10
BYTES_MAX = 72
"""bcrypt looks at no more."""
GENERATED = 22
ALPHABET = string.ascii_letters + string.digits + "!@#$%^&*()_+-="


def passwd(call: Call) -> None:
    """The hash of a password that is given, asked for twice, or made."""
    import bcrypt

    cost = call.integer("cost")
    low, high = COSTS
    if not low <= cost <= high:
        raise UsageError(f"bcrypt cost should be between {low} and {high}")
    password = call.text("pass") or call.environ.get("PASSWORD", "")
    made = not password and call.flag("generate")
    if made:
        password = "".join(secrets.choice(ALPHABET) for _ in range(GENERATED))
    password = password or _asked(call)
    if len(password) < LENGTH_MIN:
        raise UsageError(f"password should be at least {LENGTH_MIN} characters long")
    secret = password.encode("utf-8", "surrogateescape")  # the bytes that were given
    if len(secret) > BYTES_MAX:
        raise UsageError("error producing bcrypt hash: bcrypt: password length exceeds 72 bytes")
    hashed = bcrypt.hashpw(secret, bcrypt.gensalt(cost, prefix=b"2a")).decode()
    if call.as_data:
        call.output.json({"password": password if made else "", "hash": hashed})
        return
    if made:
        call.output.print(f"Generated password: {password}")
    call.output.print(f"       bcrypt hash: {hashed}" if call.flag("generate") else hashed)


def _asked(call: Call) -> str:
    """Twice, and not shown."""
    if not call.prompts.possible:
        raise NeedsConfirmation(
            "could not read password: cannot prompt for user input without a terminal"
        )
    first, second = (
        call.prompts.secret(f"{what} password", check=_long_enough)
        for what in ("Enter", "Re-enter")
    )
    if first != second:
        raise UsageError("entered and re-entered passwords do not match")
    return first


def _long_enough(password: str) -> str:
    if len(password) < LENGTH_MIN:
        raise ValueError(f"value is too short. Min length is {LENGTH_MIN}")
    return password
