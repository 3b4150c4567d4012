"""The monitoring port: requests become `Query`s, `Answer`s responses. It knows no path: the node
answers. How HTTP is spoken is in `http_connection`, which is loaded with the port."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jsctl.broker.options import MonitorOptions
from jsctl.broker.turn import Answer, Query

if TYPE_CHECKING:
    from jsctl.broker.server.http_connection import MonitorConnection


@dataclass(slots=True)
class Monitor:
    """The open requests of all monitoring connections."""

    options: MonitorOptions
    ask: Callable[[Query], None]
    waiting: dict[int, "MonitorConnection"] = field(default_factory=dict)
    open: set["MonitorConnection"] = field(default_factory=set)
    last_token: int = 0

    def protocol(self) -> "MonitorConnection":
        """A new connection's protocol."""
        from jsctl.broker.server.http_connection import MonitorConnection

        return MonitorConnection(self)

    def query(self, connection: "MonitorConnection", path: str, params: dict[str, str]) -> None:
        """Hand a request to the node."""
        self.last_token += 1
        self.waiting[self.last_token] = connection
        self.ask(Query(self.last_token, path, params))

    def answer(self, answer: Answer) -> None:
        """Send a response, if its connection is still there."""
        connection = self.waiting.pop(answer.token, None)
        if connection is not None:
            connection.respond(answer.status, answer.content_type, answer.body)

    def close(self) -> None:
        """End all connections."""
        for connection in list(self.open):
            connection.end()
