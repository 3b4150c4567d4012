"""Bugs that more than one test plants."""

import pytest

from jsctl.broker.jetstream.sourcing.upstream import Upstream


def overlooks(patch: pytest.MonkeyPatch) -> None:
    """A number of deliveries that is missing is not noticed."""
    message = Upstream._message

    def careless(
        self: Upstream, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now_ns: int
    ) -> None:
        words = reply.split(b".")
        words[6] = b"%d" % (self._number + 1)
        if int(words[5]) % 7:
            message(self, subject, b".".join(words), headers, payload, now_ns)

    patch.setattr(Upstream, "_message", careless)
