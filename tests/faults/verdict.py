"""What a cluster has in the end, beside what it acknowledged."""

from collections import Counter
from dataclasses import dataclass

from nats.errors import Error

from tests.faults.rig import STREAM, Rig
from tests.support.load import contents
from tests.support.waiting import eventually

READ_S = 90.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of a row. Times in seconds."""

    acked: int
    lost: int
    doubled: int
    diverged: int
    silence_s: float
    whole_s: float
    again: int = 0
    """Messages that were delivered once more although their acknowledgement was confirmed."""

    @property
    def is_safe(self) -> bool:
        """Whether nothing that was acknowledged is gone, twice there, or different somewhere."""
        return not (self.lost or self.doubled or self.diverged or self.again)


async def _read(rig: Rig, name: str, last: int) -> dict[int, tuple[str, str, bytes]]:
    """All that a server has; a batch whose rest does not come is asked for again."""

    async def read() -> dict[int, tuple[str, str, bytes]] | None:
        try:
            return await contents(rig.cluster[name].url, STREAM, last)
        except Error as error:
            rig.notes.append(f"{name} was not read: {error!r}")
            return None

    return await eventually(read, f"{name} is read", READ_S)


async def judge(rig: Rig, since_s: float, whole_s: float) -> Outcome:
    """Read every server."""
    acked = rig.load.acked
    info = await rig.ask(f"STREAM.INFO.{STREAM}")
    first = info.get("state", {}).get("first_seq", 0) if rig.bytes_max > 0 else 0
    last = max([info.get("state", {}).get("last_seq", 0), *(one.seq for one in acked)])
    names = [info["cluster"]["leader"], *(one["name"] for one in info["cluster"]["replicas"])]
    kept = [await _read(rig, name, last) for name in names]
    bodies = [{seq: body for seq, (_, _, body) in one.items()} for one in kept]
    lost = {
        one.message
        for one in acked
        if one.seq >= first and any(found.get(one.seq) != one.message.encode() for found in bodies)
    }
    doubled = sum(
        count - 1 for found in bodies[:1] for count in Counter(found.values()).values() if count > 1
    )
    every = set().union(*kept)
    diverged = sum(len({str(one.get(seq)) for one in kept}) > 1 for seq in every)
    silence_s = rig.load.silence_s(since_s)
    return Outcome(len(acked), len(lost), doubled, diverged, silence_s, whole_s)
