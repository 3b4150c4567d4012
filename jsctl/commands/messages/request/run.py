"""`jsctl request`: asks and prints what comes back."""

from jsctl.commands.toolkit.content.asking import ask_all
from jsctl.commands.toolkit.content.bodies import check_subject
from jsctl.commands.toolkit.invocation.call import Call


async def request(call: Call) -> int:
    """Sends requests."""
    subject = call.text("subject")
    if not call.flag("templates") or "{{" not in subject:
        check_subject(subject)
    async with call.client() as client:
        return await ask_all(client, call, subject)
