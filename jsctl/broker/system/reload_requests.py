"""Requests for a reload, from the asking to the answer.

The edge reads the file between two turns. One reload serves all who asked before it: the file is
read after the last of them.
"""

from dataclasses import field

from jsctl.broker.interest.targets import Namespace
from jsctl.dataclass import dataclass

Asked = tuple[Namespace, bytes, bytes]
"""Account, reply subject and headers of a request."""


@dataclass(slots=True)
class ReloadRequests:
    """Those that wait for their answer."""

    _wanted: bool = False
    _asked: list[Asked] = field(default_factory=list)

    def ask(self, account: Namespace, reply: bytes, headers: bytes) -> None:
        """Somebody wants a reload."""
        self._wanted = True
        self._asked.append((account, reply, headers))

    def take(self) -> bool:
        """Whether one is to be begun: somebody asked since the last call."""
        wanted, self._wanted = self._wanted, False
        return wanted

    def ended(self) -> list[Asked]:
        """Whom the end of a reload is to be told."""
        asked, self._asked = self._asked, []
        return asked
