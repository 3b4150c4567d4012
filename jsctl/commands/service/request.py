"""`service request`: asks an endpoint of whoever has it."""

from jsctl.client.services import endpoint_named, first, subject_of, text_of
from jsctl.commands.toolkit.content.asking import ask_all
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NotFound


async def request(call: Call) -> int:
    """Finds the endpoint's subject by one instance, then sends requests there."""
    name = call.text("service")
    async with call.client() as client:
        found = await first(client, subject_of("INFO", name), call.settings.timeout)
        if found is None:
            raise NotFound(f'no instances of service "{name}" found')
        subject = text_of(endpoint_named(found, call.text("endpoint")), "subject")
        return await ask_all(client, call, subject, body="payload", typed=False)
