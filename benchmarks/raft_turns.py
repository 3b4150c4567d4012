"""What a turn of a raft group costs, without disk and network: `python -m benchmarks.raft_turns`.

One turn: propose a batch of one, take the Ready, report it durable, take the committed entry.
"""

import time

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Members, Message

TURNS = 50_000
PAYLOAD = [b"x" * 128]
COMPACT_EVERY = 1000


def build(names: str) -> dict[str, Raft]:
    """A group whose first node leads."""
    members = Members(tuple(names))
    group = {name: Raft(name, members=members, jitter=lambda n: 0) for name in names}
    group[names[0]].campaign()
    settle(group)
    return group


def settle(group: dict[str, Raft]) -> None:
    """Do everything that is to be done, with disks and links that take no time."""
    moved = True
    while moved:
        moved = False
        mail: list[Message] = []
        for raft in group.values():
            ready = raft.ready()
            if not ready:
                continue
            moved = True
            if ready.to_persist is not None:
                raft.persisted(*ready.to_persist)
            mail += ready.send
            mail += ready.send_after_sync
            if ready.committed:
                raft.applied_to(ready.committed[-1].index)
        for message in mail:
            group[message.to].step([message])


def measure(names: str) -> float:
    """Microseconds for a turn of a group, all its nodes together."""
    group = build(names)
    leader = group[names[0]]
    start = time.perf_counter()
    for turn in range(TURNS):
        leader.propose(PAYLOAD)
        settle(group)
        if turn % COMPACT_EVERY == 0:
            for raft in group.values():
                raft.compact(raft.applied)
    return (time.perf_counter() - start) / TURNS * 1e6


def measure_idle() -> float:
    """Nanoseconds of `ready()` when there is nothing to do."""
    raft = build("a")["a"]
    start = time.perf_counter()
    for _ in range(TURNS):
        raft.ready()
    return (time.perf_counter() - start) / TURNS * 1e9


def main() -> None:
    """Print the figures."""
    print(f"group of one:   {measure('a'):6.2f} us a turn")
    print(f"group of three: {measure('abc'):6.2f} us a turn, all three nodes")
    print(f"idle ready():   {measure_idle():6.0f} ns")


if __name__ == "__main__":
    main()
