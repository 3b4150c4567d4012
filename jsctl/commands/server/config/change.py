"""`server config reload`."""

from jsctl.api.monitoring.varz import Varz
from jsctl.client.system import NatsSystem, SystemReply
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.render.reports.server.info import server_screen


async def reload(call: Call) -> None:
    """A server reads its configuration again; then its facts are shown."""
    server_id = call.text("id")
    if set(server_id) & set(".*> \t"):
        raise UsageError(
            f"'{server_id}' is no server ID", hints=("`jsctl server ping --id` tells them",)
        )
    async with call.client() as client:
        system = NatsSystem(client, call.settings)
        if not call.flag("force"):
            server = (await _asked(system, "VARZ", server_id)).server
            question = (
                f"Really reload configuration for {server.name} ({server.id}) on {server.host}"
            )
            if not call.prompts.confirm(question, prefix=""):
                return
        answer = await _asked(system, "RELOAD", server_id)
        if answer.error is not None:
            raise JsctlError(f"reload failed: {answer.error.description}")
        facts = await _asked(system, "VARZ", server_id)
    if call.as_json:
        call.output.json(facts.data)
    else:
        call.output.details(server_screen(facts.as_(Varz)))


async def _asked(system: NatsSystem, kind: str, server_id: str) -> SystemReply:
    replies = await system.gather(kind, server_id=server_id)
    if not replies:
        raise NotFound(f"no response from server {server_id}")
    return replies[0]
