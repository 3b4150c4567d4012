"""What a connection of leaf nodes lets pass, as routing asks for it."""

from typing import Protocol


class Guard(Protocol):
    """What may cross a leaf node's connection."""

    @property
    def takes_all(self) -> bool:
        """Whether nothing of what the other side says is refused."""

    @property
    def tracks_replies(self) -> bool:
        """Whether `note_reply` is to be told of each request."""

    def may_send(self, subject: bytes) -> bool:
        """Whether the other side may have a message."""

    def deciding(self, subject: bytes) -> int:
        """How many tokens of a subject, from the first on, decide on that together with their
        number."""

    def may_tell(self, pattern: bytes) -> bool:
        """Whether the other side may know that somebody here listens."""

    def may_take(self, subject: bytes, now_ns: int) -> bool:
        """Whether the other side may say something; an answer to what it was asked counts."""

    def taking(self, subject: bytes) -> int:
        """As `deciding`, of what it may say without having been asked; 0 if that is nothing."""

    def note_reply(self, reply: bytes, now_ns: int) -> None:
        """A request with this reply was sent to the other side."""
