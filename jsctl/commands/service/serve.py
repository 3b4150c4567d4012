"""`service serve`: a service that echoes, to try others with."""

import asyncio
import os
import time
from typing import TYPE_CHECKING

from jsctl import __version__
from jsctl.client.addresses import shown_url
from jsctl.commands.toolkit.content.bodies import HeaderPairs, every_header
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.render.details import Details
from jsctl.render.humanize import moment_ns

if TYPE_CHECKING:
    from nats.micro.request import Request
    from nats.micro.service import EndpointStats

    from jsctl.client.library import NatsClient


async def serve(call: Call) -> None:
    """Answers until it is stopped."""
    from nats.micro import add_service

    name, extra = call.text("name"), call.mapping("header")
    async with call.client() as client:
        echo = _Echo(client, call, extra)
        try:
            service = await add_service(
                client,
                name=name,
                version="1.0.0",
                description=f"NATS CLI Demo Service ({name})",
                metadata={
                    "_nats.client.created.library": "jsctl",
                    "_nats.client.created.version": __version__,
                },
                stats_handler=echo.statistics,
            )
        except ValueError:
            raise UsageError(
                "validation: service name: name should not be empty and should consist of "
                "alphanumerical characters, dashes and underscores"
            ) from None
        group = service.add_group(name=name)
        await group.add_endpoint(name="echo", handler=echo.answer)
        await client.flush()
        call.output.details(_screen(client, name, extra))
        call.output.stdout.flush()
        try:
            await asyncio.Event().wait()
        finally:
            await service.stop()


def _screen(client: "NatsClient", name: str, extra: dict[str, str]) -> Details:
    where = shown_url(client.connected_url.geturl()) if client.connected_url else ""
    screen = Details(
        f"NATS CLI Service {name} handler {os.getpid()} waiting for requests on {where}"
    )
    screen.section("Listening Subjects")
    screen.row(f"{name}.echo", "Echo Service")
    if extra:
        screen.section("Custom Response Headers")
        for key, value in extra.items():
            screen.row(key, value)
    screen.section("Requests Log", parent=True)
    return screen


class _Echo:
    """Answers with what it gets, and counts that."""

    def __init__(self, client: "NatsClient", call: Call, extra: dict[str, str]) -> None:
        self._client = client
        self._call = call
        self._extra = extra
        self._total_bytes = 0

    def statistics(self, _endpoint: "EndpointStats") -> dict[str, int]:
        """For the endpoint's own part of the statistics."""
        return {"total_payload": self._total_bytes}

    async def answer(self, request: "Request") -> None:
        """One request; the answer's headers say who gave it, before those of the request."""
        from nats.errors import MaxPayloadError
        from nats.micro.request import ServiceError

        from jsctl.client.headers import Headers

        self._call.output.log(f"Handling request on subject {request.subject}")
        self._total_bytes += len(request.data)
        own = (*self._place(request), *self._extra.items())
        headers = Headers.of((*own, *every_header(request.headers)))
        try:
            await request.respond(request.data, headers=headers)
        except MaxPayloadError as error:
            raise ServiceError("500", str(error)) from None

    def _place(self, request: "Request") -> HeaderPairs:
        """Where the answer comes from."""
        url = self._client.connected_url
        cluster = self._client._server_info.get("cluster")
        return (
            ("ConnectedUrl", shown_url(url.geturl()) if url else ""),
            ("Handler", str(os.getpid())),
            ("Subject", request.subject),
            ("Timestamp", moment_ns(time.time_ns())),
            *([("ConnectedCluster", str(cluster))] if cluster else ()),
        )
