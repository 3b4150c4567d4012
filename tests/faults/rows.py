"""The rows: each a fault, how often, and what must hold then."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from jsctl.testing import Broker
from tests.faults import damage
from tests.faults.broken_off import checked, fill, repair_broken_off
from tests.faults.rig import STREAM, Rig
from tests.faults.volumes import Volume
from tests.support.waiting import eventually

BYTES_MAX = 10_000_000
LARGE_COUNT = 1000
"""So many messages of 40 kB: with the checkpoint after 32 MiB the segments (8 MiB) that the limit
emptied are removed."""

Fault = Callable[[Rig, dict[str, Volume]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Row:
    """`number` is that of the matrix in docs/reliability.md; times in seconds."""

    number: int
    name: str
    fault: Fault
    silence_s: float
    """Longest time without an acknowledgement."""
    whole_s: float
    """Longest time until everything is as it should be again."""
    servers: int = 3
    replicas: int = 3
    volumes: bool = False
    """Each server needs a file system of its own."""
    links: bool = False
    """Links between servers are cut."""
    readers: bool = False
    """A consumer is read meanwhile."""
    bytes_max: int = -1
    """The limit of the stream."""


async def nothing(rig: Rig, _: dict[str, Volume]) -> None:
    """No fault."""
    await rig.acks(100, 200)


async def kill_all(rig: Rig, _: dict[str, Volume]) -> None:
    """All processes at once."""
    for broker in rig.cluster:
        broker.kill()
    for broker in rig.cluster:
        broker.launch()
    await rig.acks(20, 60)


async def kill_leader(rig: Rig, _: dict[str, Volume]) -> None:
    """The leader, when all are there."""
    await rig.whole_s(30)
    victim = await rig.leader()
    victim.kill()
    await rig.acks(20, 60)
    await rig.start(victim)


async def kill_rolling(rig: Rig, _: dict[str, Volume]) -> None:
    """One after the other, without waiting for anything."""
    victim = rig.rng.choice(list(rig.cluster))
    victim.kill()
    victim.launch()
    await rig.acks(1, 20)


async def pause_leader(rig: Rig, _: dict[str, Volume]) -> None:
    """The leader stands still until others have gone on, and comes back with what it had."""
    await rig.whole_s(30)
    victim = await rig.leader()
    victim.pause()
    try:
        await rig.acks(50, 150)
    finally:
        victim.resume()
    await rig.acks(20, 60)


async def damage_stopped(
    rig: Rig, _: dict[str, Volume], ways: Sequence[damage.Way] | None = None
) -> None:
    """A file of a server that is down."""
    await rig.whole_s(30)
    kind = rig.rng.choice(list(damage.CLASSES))
    victim = await (rig.leader() if rig.rng.random() < 0.5 else rig.follower())
    victim.kill()
    done = damage.damage(victim.store_dir, kind, rig.rng, ways)
    rig.notes.append(f"{victim.name}: {done or 'nothing of ' + kind}")
    await rig.acks(5, 40)
    await rig.start(victim)
    await rig.acks(20, 60)


async def damage_behind_limits(rig: Rig, _: dict[str, Volume]) -> None:
    """A file of a stream whose first segments were removed by its limit: what says where it
    begins is not in its segments alone. In one case of four all of its store is gone."""
    await rig.whole_s(30)
    is_first = not rig.notes
    await fill(rig, LARGE_COUNT)
    victim = await (rig.leader() if rig.rng.random() < 0.5 else rig.follower())
    victim.kill()
    streams = victim.store_dir / "jetstream" / "streams"
    segments = damage.files(streams, "segment")
    # Later a replica that was copied from another one numbers its segments from the first on.
    assert not is_first or not any(one.name.startswith("0000000001.") for one in segments)
    if rig.rng.random() < 0.25:
        shutil.rmtree(segments[0].parent)
        done = f"{segments[0].parent.name} removed"
    else:
        kind = rig.rng.choice(["segment", "catalogue", "state", "durable", "durable", "index"])
        ways = (damage.remove,) if kind == "durable" else None
        done = damage.damage(streams, kind, rig.rng, ways) or f"nothing of {kind}"
    rig.notes.append(f"{victim.name}: {done}")
    await rig.acks(5, 40)
    await rig.start(victim)
    await rig.acks(20, 60)


async def no_file_stopped(rig: Rig, volumes: dict[str, Volume]) -> None:
    """Something else is in the place of a file when a server starts."""
    await damage_stopped(rig, volumes, damage.STRANGERS)


async def no_file_live(rig: Rig, _: dict[str, Volume]) -> None:
    """Something else takes the place of a file of a stream while its server runs."""
    await rig.whole_s(30)
    kind = rig.rng.choice(["segment", "catalogue", "state", "durable"])
    victim = await (rig.leader() if rig.rng.random() < 0.5 else rig.follower())
    done = damage.damage(
        victim.store_dir / "jetstream" / "streams", kind, rig.rng, damage.STRANGERS
    )
    rig.notes.append(f"{victim.name}: {done or 'nothing of ' + kind}, live")
    await checked(rig)
    await rig.acks(20, 60)


async def damage_live(rig: Rig, _: dict[str, Volume]) -> None:
    """A segment of a server that runs."""
    await rig.whole_s(30)
    victim = await (rig.leader() if rig.rng.random() < 0.5 else rig.follower())
    found = [one for one in damage.files(victim.store_dir, "segment") if one.stat().st_size > 4096]
    if found:
        path = rig.rng.choice(found)
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(rig.rng.randrange(size // 2))
            file.write(b"\xff")
        rig.notes.append(f"{victim.name}: a byte of {path.name}, live")
    await rig.acks(50, 100)


async def damage_log_and_one_behind(rig: Rig, _: dict[str, Volume]) -> None:
    """A log is damaged while another replica has missed something."""
    await rig.whole_s(30)
    behind = await rig.follower()
    behind.kill()
    await rig.acks(50, 100)
    victim = await rig.follower()
    victim.kill()
    done = damage.damage(victim.store_dir, "log", rig.rng)
    rig.notes.append(f"{victim.name}: {done}; {behind.name} is behind")
    for broker in (victim, behind):
        await rig.start(broker)
    await rig.acks(20, 60)


async def wipe(rig: Rig, _: dict[str, Volume]) -> None:
    """A disk is replaced by an empty one."""
    await rig.whole_s(60)
    victim = await (rig.leader() if rig.rng.random() < 0.5 else rig.follower())
    victim.kill()
    shutil.rmtree(victim.store_dir)
    await rig.acks(5, 40)
    await rig.start(victim)
    await rig.acks(20, 60)


async def move(rig: Rig, _: dict[str, Volume]) -> None:
    """A replica goes to another server, and a server dies meanwhile."""
    await rig.whole_s(60)
    leaving = await rig.follower()
    await rig.ask(f"STREAM.PEER.REMOVE.{STREAM}", peer=leaving.name)
    victim = rig.rng.choice(list(rig.cluster))
    victim.kill()
    await rig.acks(10, 40)
    await rig.start(victim)
    await rig.acks(10, 40)


async def power_all(rig: Rig, volumes: dict[str, Volume]) -> None:
    """All lose power."""
    await _cut(rig, list(rig.cluster), volumes)
    await rig.acks(20, 60)


async def power_leader(rig: Rig, volumes: dict[str, Volume]) -> None:
    """The leader does."""
    await rig.whole_s(60)
    await _cut(rig, [await rig.leader()], volumes)
    await rig.acks(20, 60)


async def power_rolling(rig: Rig, volumes: dict[str, Volume]) -> None:
    """One after the other, without waiting for anything but that it runs."""
    await _cut(rig, [rig.rng.choice(list(rig.cluster))], volumes)
    await rig.acks(1, 20)


async def power_and_pauses(rig: Rig, volumes: dict[str, Volume]) -> None:
    """Some miss what is acknowledged, and one of those that have it loses power: with those that
    missed it that one is a majority, and has to speak for all that stand still."""
    await rig.whole_s(60)
    names = rig.rng.sample(list(rig.cluster.names), len(rig.cluster.names))
    minority = (len(names) - 1) // 2
    away = [rig.cluster[name] for name in names[:minority]]
    victim, *rest = (rig.cluster[name] for name in names[minority:])
    rig.notes.append(f"{victim.name} loses power; {', '.join(one.name for one in away)} missed it")
    try:
        for broker in away:
            broker.pause()
        await rig.acks(50, 100)
        await _cut(rig, [victim], volumes)
        for broker in rest:
            broker.pause()
        for broker in away:
            broker.resume()
        await rig.acks(50, 100)
    finally:
        for broker in rig.cluster:
            broker.resume()
    await rig.acks(20, 60)


async def _cut(rig: Rig, victims: list[Broker], volumes: dict[str, Volume]) -> None:
    for broker in victims:
        broker.kill()
        volumes[broker.name].cut_power()
    for broker in victims:
        broker.launch()
    await asyncio.gather(*(rig.off_loop(broker.wait_ready) for broker in victims))


async def disk_full(rig: Rig, volumes: dict[str, Volume]) -> None:
    """All disks are full for a moment: nothing is acknowledged, everything is read."""
    await rig.whole_s(60)
    running = {broker.name: broker.pid for broker in rig.cluster}
    for volume in volumes.values():
        volume.fill()
    before = len(rig.load.acked)
    info = await rig.ask(f"STREAM.INFO.{STREAM}")
    assert info.get("state", {}).get("messages"), "reads go on"
    rig.notes.append(f"full at {before} acknowledged")
    for volume in volumes.values():
        volume.free()
    await rig.acks(20, 60)
    assert {one.name: one.pid for one in rig.cluster if one.running} == running, "processes stay"


async def _disk_goes_bad(
    rig: Rig, volumes: dict[str, Volume], happens: Callable[[Volume], None]
) -> None:
    """A server ends by itself, with a status that says so; then its disk is mended."""
    await rig.whole_s(60)
    victim = await (rig.leader() if rig.rng.random() < 0.5 else rig.follower())
    volume = volumes[victim.name]
    happens(volume)

    async def ended() -> bool:
        return not victim.running

    await eventually(ended, f"{victim.name} ends when its disk fails")
    status = victim.stop()
    assert status == 1, f"exit status {status}"
    rig.notes.append(f"{victim.name} ended")
    await rig.acks(20, 60)
    await rig.off_loop(volume.mend)
    await rig.start(victim)
    await rig.acks(20, 60)


async def sync_fails(rig: Rig, volumes: dict[str, Volume]) -> None:
    """Every write and every sync of a disk fails from one moment on."""
    await _disk_goes_bad(rig, volumes, Volume.fail)


async def read_only(rig: Rig, volumes: dict[str, Volume]) -> None:
    """The kernel makes a file system read-only, as it has met an error in it."""
    await _disk_goes_bad(rig, volumes, Volume.turn_read_only)


async def isolate_leader(rig: Rig, _: dict[str, Volume]) -> None:
    """The leader hears nobody until others have gone on; it serves no reads from the past."""
    await rig.whole_s(30)
    victim = await rig.leader()
    rig.cuts().isolate(victim.name)
    try:
        await rig.acks(100, 200)
        answer = await rig.ask_at(victim, f"STREAM.MSG.GET.{STREAM}", last_by_subj="s.x")
        assert "message" not in answer, f"{victim.name} is cut off and serves reads"
    finally:
        rig.cuts().heal()
    await rig.acks(20, 60)


async def changing_splits(rig: Rig, _: dict[str, Volume]) -> None:
    """A minority is cut off, another one each time, without waiting for anything."""
    names = list(rig.cluster.names)
    side = rig.rng.sample(names, rig.rng.randint(1, (len(names) - 1) // 2))
    rig.cuts().heal()
    rig.cuts().split(side)
    rig.notes.append(f"cut off: {', '.join(side)}")
    await rig.acks(30, 90)
    rig.cuts().heal()
    await rig.acks(1, 10)


async def ring(rig: Rig, _: dict[str, Volume]) -> None:
    """Each of five servers hears its two neighbours in a ring and nobody else."""
    names = rig.rng.sample(list(rig.cluster.names), len(rig.cluster.names))
    count = len(names)
    apart = [
        (names[one], names[other])
        for one in range(count)
        for other in range(count)
        if (one - other) % count not in (0, 1, count - 1)
    ]
    rig.cuts().cut(apart)
    try:
        await rig.acks(50, 100)
    finally:
        rig.cuts().heal()
    await rig.acks(20, 60)


async def one_way(rig: Rig, _: dict[str, Volume]) -> None:
    """A server is heard, and hears nobody; or the other way round."""
    victim = await (rig.leader() if rig.rng.random() < 0.7 else rig.follower())
    others = [name for name in rig.cluster.names if name != victim.name]
    deaf = rig.rng.random() < 0.5
    rig.notes.append(f"{victim.name} is {'deaf' if deaf else 'mute'}")
    rig.cuts().cut([(one, victim.name) if deaf else (victim.name, one) for one in others])
    try:
        await rig.acks(50, 100)
    finally:
        rig.cuts().heal()
    await rig.acks(20, 60)


async def removed_while_down(rig: Rig, _: dict[str, Volume]) -> None:
    """A server is taken out of the cluster while it is down. It does not come back by itself with
    what it was; with an empty disk it does, as another one."""
    await rig.whole_s(60)
    victim = await rig.follower()
    victim.kill()
    answer: dict[str, object] = {}

    async def removed() -> bool:
        nonlocal answer
        other = next(one for one in rig.cluster if one.running)
        answer = await rig.ask_at(other, "SERVER.REMOVE", system=True, peer=victim.name)
        return bool(answer.get("success"))

    await eventually(removed, f"{victim.name} is removed: {answer}")
    await rig.acks(20, 60)
    await rig.start(victim)
    await rig.acks(50, 100)
    peers = (await rig.ask(f"STREAM.INFO.{STREAM}"))["cluster"]["replicas"]
    assert victim.name not in [one["name"] for one in peers], "it is back by itself"
    victim.stop()
    shutil.rmtree(victim.store_dir)
    await rig.start(victim)
    await rig.acks(20, 60)


ROWS = (
    Row(1, "nothing", nothing, 2.0, 10),
    Row(3, "kill all", kill_all, 8.0, 20),
    Row(4, "kill leader", kill_leader, 2.5, 20),
    Row(5, "kill rolling", kill_rolling, 8.0, 20),
    Row(6, "power cut of all", power_all, 12.0, 30, volumes=True),
    Row(7, "power cut of the leader", power_leader, 4.0, 30, volumes=True),
    Row(7, "power cuts, rolling", power_rolling, 8.0, 30, volumes=True),
    Row(8, "power cut and pauses", power_and_pauses, 8.0, 30, volumes=True),
    Row(8, "the same, five servers", power_and_pauses, 8.0, 30, 5, 5, volumes=True),
    Row(9, "damage, stopped", damage_stopped, 4.0, 30),
    Row(9, "damage, live", damage_live, 4.0, 30),
    Row(9, "damage behind limits", damage_behind_limits, 8.0, 30, bytes_max=BYTES_MAX),
    Row(9, "no file, stopped", no_file_stopped, 4.0, 30),
    Row(9, "no file, live", no_file_live, 4.0, 30),
    Row(9, "repair broken off", repair_broken_off, 8.0, 30),
    Row(10, "damaged log and one behind", damage_log_and_one_behind, 8.0, 30),
    Row(11, "damage, five servers", damage_stopped, 4.0, 30, servers=5, replicas=5),
    Row(12, "wiped disk", wipe, 4.0, 60),
    Row(15, "pause leader", pause_leader, 4.0, 20),
    Row(16, "leader cut off", isolate_leader, 4.0, 20, links=True),
    Row(17, "changing splits", changing_splits, 8.0, 20, servers=5, replicas=5, links=True),
    Row(17, "ring", ring, 8.0, 20, servers=5, replicas=5, links=True),
    Row(17, "one-way", one_way, 8.0, 20, links=True),
    Row(18, "moves and kills", move, 6.0, 60, servers=5),
    Row(18, "removed while down", removed_while_down, 6.0, 60, servers=5),
    Row(19, "disks full, then freed", disk_full, 8.0, 20, volumes=True),
    Row(20, "sync fails", sync_fails, 4.0, 30, volumes=True),
    Row(20, "disk turns read-only", read_only, 4.0, 30, volumes=True),
    Row(22, "acks over kills of all", kill_all, 8.0, 20, readers=True),
    Row(22, "acks over kills of leaders", kill_leader, 2.5, 20, readers=True),
    Row(22, "acks over rolling kills", kill_rolling, 8.0, 20, readers=True),
    Row(22, "acks over power cuts of all", power_all, 12.0, 30, volumes=True, readers=True),
    Row(22, "acks over pauses of leaders", pause_leader, 4.0, 20, readers=True),
    Row(22, "acks over leaders cut off", isolate_leader, 4.0, 20, links=True, readers=True),
)
"""Times are for two cores that are busy; docs/reliability.md has the aims of a quiet machine."""
