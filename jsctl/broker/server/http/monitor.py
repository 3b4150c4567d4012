"""The monitoring port: requests become `Query`s, `Answer`s responses. It knows no path: the node
answers. How HTTP is spoken is in `http_connection`, which the edge loads with the port."""

from collections.abc import Callable
from dataclasses import field
from typing import Protocol

from jsctl.broker.options import MonitorOptions
from jsctl.broker.turn import Answer, Query
from jsctl.dataclass import dataclass


class Asker(Protocol):
    """A connection that requests come in on, one at a time."""

    def respond(self, status: int, content_type: str, body: bytes) -> None:
        """Send the answer to the request that is open."""

    def end(self) -> None:
        """Close it."""


@dataclass(slots=True)
class Monitor:
    """The open requests of all monitoring connections."""

    options: MonitorOptions
    ask: Callable[[Query], None]
    waiting: dict[int, Asker] = field(default_factory=dict)
    open: set[Asker] = field(default_factory=set)
    last_token: int = 0

    def query(self, connection: Asker, path: str, params: dict[str, str]) -> None:
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
