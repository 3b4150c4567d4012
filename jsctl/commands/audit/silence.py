"""Which servers do not answer any more: who gathers from many waits for each of them once.

A server that is asked for something that it does not know says nothing, too: so it is asked
whether it is there at all, before it is given up.
"""

from collections.abc import Awaitable, Callable, Collection

Asked = Callable[[str], Awaitable[bool]]


class Silence:
    """What is known of servers, by their ids, and of the kinds of requests that they pass over."""

    def __init__(self, answers: Asked) -> None:
        """`answers` tells whether a server of this id answers what all servers know."""
        self._answers = answers
        self._gone: set[str] = set()
        self._passed_over: set[tuple[str, str]] = set()

    def waited_for(self, servers: Collection[str]) -> list[str]:
        """Those of them that are there, as far as is known."""
        return [one for one in servers if one not in self._gone]

    def is_doubtful(self, servers: Collection[str], kind: str) -> bool:
        """Whether some of them may say nothing to this kind of request, and others will."""
        silent = sum((one, kind) in self._passed_over for one in servers)
        return 0 < silent < len(servers)

    async def note(self, servers: Collection[str], kind: str) -> list[str]:
        """These did not answer. Returns those that are not there at all, which nobody knew."""
        gone = []
        for one in servers:
            self._passed_over.add((one, kind))
            if one not in self._gone and not await self._answers(one):
                self._gone.add(one)
                gone.append(one)
        return gone
