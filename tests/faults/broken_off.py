"""Repairs that do not come to their end at once: who repairs, or is asked, dies meanwhile."""

import asyncio
import random
from contextlib import suppress
from typing import Any

from jsctl.testing import Broker
from tests.faults import damage
from tests.faults.rig import STREAM, Rig
from tests.support.waiting import eventually

REPAIRED_S = 30.0
"""What a repair may take under load."""
LARGE = 300
LARGE_BYTES = 40_000
AT_A_TIME = 20


async def fill(rig: Rig, count: int = LARGE) -> None:
    """Enough for a repair to take a while, or for limits to remove segments; once in a run."""
    assert rig.client is not None
    if "large" in rig.notes:
        return
    rig.notes.append("large")
    for first in range(0, count, AT_A_TIME):
        numbers = range(first, first + AT_A_TIME)
        await asyncio.gather(*(_store(rig, number) for number in numbers))


async def _store(rig: Rig, number: int) -> None:
    body = b"large %d " % number + random.Random(number).randbytes(LARGE_BYTES)

    async def stored() -> bool:
        assert rig.client is not None
        headers = {"Nats-Msg-Id": f"large {number}"}
        with suppress(Exception):
            answer = await rig.client.request("s.large", body, timeout=2, headers=headers)
            return b'"seq"' in answer.data
        return False

    await eventually(stored, f"message {number} is stored")


def spoil(rig: Rig, victim: Broker) -> None:
    """A page here and there, in all segments."""
    for path in damage.files(victim.store_dir, "segment"):
        size = path.stat().st_size
        with path.open("r+b") as file:
            for at in range(rig.rng.randrange(40_000), size, 400_000):
                file.seek(at)
                file.write(bytes(min(4096, size - at)))


async def _check(rig: Rig) -> None:
    """Have all replicas read, once somebody leads who says that he does so."""

    async def begins() -> bool:
        return "check" in await rig.ask(f"STREAM.CHECK.{STREAM}", start=True)

    await eventually(begins, "a check begins", REPAIRED_S)


async def checked(rig: Rig) -> None:
    """All replicas are read now: what is damaged is found, and repaired in time."""

    async def done() -> bool:
        check = (await rig.ask(f"STREAM.CHECK.{STREAM}")).get("check")
        if check is None:
            await rig.ask(f"STREAM.CHECK.{STREAM}", start=True)
        return bool(check and check["done"])

    await _check(rig)
    await eventually(done, "what is damaged is repaired", REPAIRED_S)


async def begun(rig: Rig, victim: Broker) -> None:
    """The repair goes on: some messages are known to be damaged, or are whole again."""
    await _check(rig)

    async def found() -> bool:
        with suppress(OSError):
            page: Any = await rig.off_loop(victim.monitor, "/jsz")
            return bool(page["jsctl_scrub"]["found"])
        return False

    await eventually(found, f"the damage of {victim.name} is found", REPAIRED_S)


async def repair_broken_off(rig: Rig, _: object) -> None:
    """Damage is found under load; in the middle of its repair the server dies, or the leader, or
    both, or more is damaged."""
    await rig.whole_s(30)
    await fill(rig)
    victim = await (rig.leader() if rig.rng.random() < 0.5 else rig.follower())
    spoil(rig, victim)
    await begun(rig, victim)
    dying = {victim} if rig.rng.random() < 0.7 else set()
    if rig.rng.random() < 0.5 or not dying:
        dying.add(await rig.leader())
    for broker in dying:
        broker.kill()
    if victim in dying and rig.rng.random() < 0.5:
        spoil(rig, victim)
    rig.notes.append(f"{victim.name} is damaged; killed: {', '.join(one.name for one in dying)}")
    await asyncio.gather(*(rig.start(broker) for broker in dying))
    await checked(rig)
    await rig.acks(20, 60)
