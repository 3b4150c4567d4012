"""Who takes connections that are no client's: one for each kind of other servers."""

from typing import Protocol

from jsctl.broker.turn import Accepted, ConnKind, Dial, TurnOutputs


class Door(Protocol):
    """Routes, leaf nodes: what a turn has for such connections, and what they have for it."""

    @property
    def kind(self) -> ConnKind:
        """Of its connections."""

    def owns(self, conn: int) -> bool:
        """Whether a connection is one of them."""

    def opened(self, accepted: Accepted, now_ns: int) -> None:
        """A connection, accepted or dialed."""

    def closed(self, conn: int, reason: str, now_ns: int) -> None:
        """A connection is gone."""

    def close_faulty(self, conn: int) -> None:
        """What a connection asked for met a bug: end it, if it is one of them."""

    def feed(self, conn: int, chunk: bytes, now_ns: int) -> None:
        """Bytes came."""

    def pending(self, conn: int, unsent_bytes: int) -> None:
        """What the edge still has to send crossed a watermark."""

    def unread(self) -> list[int]:
        """Connections of which more came than one turn opens: they are fed with nothing, to go
        on."""

    def dial_failed(self, dial: Dial, reason: str, now_ns: int) -> None:
        """A dial did not lead to a connection."""

    def tick(self, now_ns: int) -> None:
        """Do what is due."""

    def deadline_ns(self) -> int | None:
        """When `tick` has something to do."""

    def emit(self, outputs: TurnOutputs) -> None:
        """Put what is to be done into the outputs of the turn."""
