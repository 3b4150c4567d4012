"""Families of subjects, as the loop in Python knows them: one fan for all that begin the same.

See `contract.Miss`; the compiled twin does the same. Acknowledgements and inboxes are subjects that
come once only: without families each of them would be asked for.
"""

from jsctl.broker.accel.contract import (
    DEPTHS_MAX,
    DOTS_MAX,
    FAMILIES_MAX,
    KEPT_MAX,
    SUBJECTS_MAX,
)
from jsctl.broker.accel.fan import LaneFan


class LaneFamily:
    """A family: its fan, None for subjects that are carried out step by step."""

    __slots__ = ("_kept", "fan")

    def __init__(self, fan: LaneFan | None) -> None:
        self.fan = fan
        self._kept = 0

    def keeps(self, known: int) -> bool:
        """Whether one more of its subjects is to be known by itself, in a table of so many."""
        keeps = self._kept < KEPT_MAX and known < SUBJECTS_MAX // 2
        self._kept += keeps
        return keeps


class LaneFamilies:
    """Those that one table knows."""

    __slots__ = ("_by_prefix", "_depths")

    def __init__(self) -> None:
        self._by_prefix: dict[tuple[int, bytes], LaneFamily] = {}
        """By dots in the whole subject, and what it begins with: some tokens, each with its dot."""
        self._depths: dict[int, list[int]] = {}
        """Dots -> how many tokens prefixes have."""

    def find(self, subject: bytes) -> LaneFamily | None:
        """The family of a subject, if it is known."""
        dots = subject.count(b".")
        for depth in self._depths.get(dots, ()):
            family = self._by_prefix.get((dots, _prefix(subject, depth)))
            if family is not None:
                return family if _is_common(subject, dots) else None
        return None

    def add(self, subject: bytes, depth: int, fan: LaneFan | None) -> None:
        """So many tokens decide on a subject of which `find` knew nothing."""
        dots = subject.count(b".")
        is_one = 1 <= depth <= dots and _is_common(subject, dots)
        if not is_one or len(self._by_prefix) >= FAMILIES_MAX:
            return
        depths = self._depths.setdefault(dots, [])
        if depth not in depths:
            if len(depths) >= DEPTHS_MAX:
                return
            depths.append(depth)
        self._by_prefix[dots, _prefix(subject, depth)] = LaneFamily(fan)


def _prefix(subject: bytes, depth: int) -> bytes:
    return subject[: len(subject) - len(subject.split(b".", depth)[depth])]


def _is_common(subject: bytes, dots: int) -> bool:
    """Whether it may be of a family: few tokens, none of them empty, and not like a pattern."""
    is_plain = b"*" not in subject and b">" not in subject
    return is_plain and dots <= DOTS_MAX and b"" not in subject.split(b".")
