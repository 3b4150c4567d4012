"""Bugs that more than one test plants."""

from collections.abc import Sequence

import pytest

from jsctl.broker.jetstream.sourcing.upstream import Captured, Upstream


def overlooks(patch: pytest.MonkeyPatch) -> None:
    """A number of deliveries that is missing is not noticed."""
    messages = Upstream._messages

    def careless(self: Upstream, some: Sequence[Captured], now_ns: int) -> None:
        kept: list[Captured] = []
        for subject, reply, headers, payload, origin in some:
            words = reply.split(b".")
            if int(words[5]) % 7:
                words[6] = b"%d" % (self._number + len(kept) + 1)
                kept.append((subject, b".".join(words), headers, payload, origin))
        messages(self, kept, now_ns)

    patch.setattr(Upstream, "_messages", careless)
