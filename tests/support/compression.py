"""Two servers that compress what goes between them: what they agree on, and what has to pass."""

import random

from nats.aio.client import Client

from tests.support.listeners import WAIT_S, known, listen, settle
from tests.support.waiting import eventually

EARLY = b"early"
"""What was said to find out whether interest is known; the last of it may be late."""
REPEATED = b'{"order": 1, "state": "shipped", "customer": "somebody"}' * 700
AGREED = [
    # the dialed side's, the dialing side's, what the one shows, what the other one shows
    ("s2_fast", "s2_fast", "s2_fast", "s2_fast"),
    ("s2_best", "s2_better", "s2_best", "s2_better"),
    ("accept", "s2_better", "s2_better", "s2_better"),
    ("s2_fast", "accept", "s2_fast", "s2_fast"),
    ("accept", "accept", "off", "off"),
    ("off", "s2_fast", "off", "off"),
    ("s2_fast", "off", "off", "off"),
    ("not_supported", "s2_fast", "not supported", "not supported"),
    ("s2_fast", "not_supported", "not supported", "not supported"),
    ("{ mode: s2_auto, rtt_thresholds: [ 10s, 20s ] }", "accept", "s2_uncompressed", "s2_fast"),
    ("accept", "{ mode: s2_auto, rtt_thresholds: [ 0s, 0s, 10s ] }", "s2_fast", "s2_better"),
    ("{ mode: s2_auto, rtt_thresholds: [ 0s, 10s ] }", "s2_best", "s2_fast", "s2_best"),
]


def bodies() -> list[bytes]:
    """Payloads that compress well, badly, and to blocks of all lengths."""
    noise = random.Random(1)
    found = [b"", b"x", REPEATED, noise.randbytes(300_000), REPEATED * 20] * 3
    return found + [noise.choice(found)[:at] for at in range(0, 4000, 7)]


async def carried(source: Client, target: Client) -> None:
    """All of them arrive, as they were, in their order."""
    heard = await listen(target, "packed")
    await known(source, "packed", heard)
    for body in bodies():
        await source.publish("packed", body)

    def came() -> list[bytes]:
        return [message.data for message in heard if message.data != EARLY]

    async def all_there() -> bool:
        await settle(source)
        return len(came()) >= len(bodies())

    await eventually(all_there, "all messages", WAIT_S)
    assert came() == bodies()
