"""Processes and all that they started: find them, kill them at once."""

import os
import signal
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """All processes that a process started, and those that they started."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def kill_tree(pid: int) -> None:
    """Kill without warning; nobody gets to notice that another one is gone."""
    stop(pid)
    tree = [pid, *descendants(pid)]
    for one in tree:
        stop(one)
    for one in dict.fromkeys([*tree, *descendants(pid)]):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue


def stop(pid: int) -> None:
    """Freeze a process if it is there."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return
