"""One answer for all subjects that differ only where no pattern tells them apart.

A family is a prefix of some tokens and a number of tokens in all. Which prefixes are families is
found out by whoever walks the patterns; here they are kept, found and forgotten.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Generic, TypeVar

FAMILIES_MAX = 4096
"""Prefixes that are kept for one account; at the limit all are dropped."""

DEPTHS_MAX = 4
"""Lengths of prefixes that are tried for subjects of one number of tokens; others are walked."""

M = TypeVar("M")


class Families(Generic[M]):
    """See the module. Prefixes end with their dot, and have one token at least."""

    def __init__(self) -> None:
        self._by_dots: dict[int, tuple[list[int], dict[bytes, M]]] = {}
        """Dots in the whole subject -> lengths of prefixes in tokens, and answers by prefix."""
        self._parents: dict[bytes, M] = {}
        """Of these, by prefix: answers for subjects that differ in their last token alone."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def find(self, subject: bytes) -> M | None:
        """The answer that the subject's family has, if it is known to be of one."""
        dots = subject.count(b".")
        known = self._by_dots.get(dots)
        if known is None:
            return None
        depths, answers = known
        for depth in depths:
            answer = answers.get(_prefix(subject, depth, dots))
            if answer is not None:
                # A prefix has no empty tokens, but what is behind it may.
                if subject.find(b"..") >= 0 or subject.endswith(b"."):
                    return None
                return answer
        return None

    def find_sibling(self, subject: bytes) -> M | None:
        """As `find`, for a family that all tokens but the last one tell."""
        prefix = subject[: subject.rfind(b".") + 1]
        answer = self._parents.get(prefix)
        return None if len(prefix) == len(subject) else answer

    def find_siblings(self, subjects: Sequence[bytes]) -> list[M] | None:
        """The answers for many subjects, if all are of families that all tokens but the last one
        tell: inboxes of many clients."""
        parents = self._parents
        try:
            found = [parents[subject[: subject.rfind(b".") + 1]] for subject in subjects]
        except KeyError:
            return None
        return None if any(map(bytes.endswith, subjects, repeat(b"."))) else found

    def depth_of(self, subject: bytes) -> int:
        """How many tokens decide on the answer for a subject that is of a known family; 0 if it is
        of none."""
        dots = subject.count(b".")
        depths, answers = self._by_dots.get(dots, ((), {}))
        if subject.find(b"..") >= 0 or subject.endswith(b"."):
            return 0
        return next((depth for depth in depths if _prefix(subject, depth, dots) in answers), 0)

    def find_common(self, subjects: Sequence[bytes]) -> M | None:
        """The answer that all of these have, if they differ in their last tokens only, and that is
        a family's: the inboxes of one client, as they come in batches."""
        first, last = min(subjects), max(subjects)
        prefix = first[: first.rfind(b".") + 1]
        dots = prefix.count(b".")
        known = self._by_dots.get(dots)
        # Everything in between begins as both ends do.
        if known is None or dots not in known[0] or not last.startswith(prefix):
            return None
        answer = known[1].get(prefix)
        if answer is None or b"".join(subjects).count(b".") != dots * len(subjects):
            return None
        return answer if len(min(subjects, key=len)) > len(prefix) else None

    def add(self, subject: bytes, depth: int, answer: M) -> None:
        """`depth` tokens and their number decide on the answer for this subject, which has more,
        and of which `find` knew nothing."""
        if self._count >= FAMILIES_MAX:
            self.clear()
        dots = subject.count(b".")
        depths, answers = self._by_dots.setdefault(dots, ([], {}))
        if depth not in depths:
            if len(depths) >= DEPTHS_MAX:
                return
            depths.append(depth)
        prefix = _prefix(subject, depth, dots)
        answers[prefix] = answer
        if depth == dots:
            self._parents[prefix] = answer
        self._count += 1

    def drop(self, subject: bytes) -> None:
        """The answer for one subject has changed: its families are none any more."""
        dots = subject.count(b".")
        depths, answers = self._by_dots.get(dots, ((), {}))
        for depth in depths:
            prefix = _prefix(subject, depth, dots)
            if answers.pop(prefix, None) is not None:
                self._count -= 1
            if depth == dots:
                self._parents.pop(prefix, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._by_dots.clear()
        self._parents.clear()
        self._count = 0


def _prefix(subject: bytes, depth: int, dots: int) -> bytes:
    if depth == dots:
        return subject[: subject.rfind(b".") + 1]
    return subject[: len(subject) - len(subject.split(b".", depth)[depth])]
