"""`auth nuid gen`."""

import secrets
import string

from jsctl.commands.toolkit.invocation.call import Call

LENGTH = 22
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


def gen(call: Call) -> None:
    """A name that nobody else will make: 22 letters and digits of chance."""
    made = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    call.output.tell(made, {"nuid": made})
