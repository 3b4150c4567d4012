"""A page of very many names in their order, without sorting all of them."""

from collections.abc import Sequence

SAMPLE = 4096
"""So many names tell between which ones a page lies."""
MARGIN = 128
"""Of these, so many more on both sides: four times what chance makes of it at most."""
SORTED_MAX = 4 * SAMPLE
"""Up to so many names, or four times what a page has, all are sorted."""


def page_of(names: Sequence[bytes], offset: int, count: int) -> list[bytes]:
    """`count` names from the one on that `offset` others come before."""
    total = len(names)
    if total <= max(SORTED_MAX, 4 * count):
        return sorted(names)[offset : offset + count]
    some = sorted(names[:: total // SAMPLE])
    first = offset * len(some) // total - MARGIN
    behind = (offset + count) * len(some) // total + MARGIN
    left, before = names, 0
    if behind < len(some):
        end = some[behind]
        left = [name for name in left if name < end]
    if first > 0:
        start, size = some[min(first, len(some) - 1)], len(left)
        left = [name for name in left if name >= start]
        before = size - len(left)
    found = sorted(left)[max(offset - before, 0) :][:count]
    if before > offset or len(found) < min(count, total - offset):
        return sorted(names)[offset : offset + count]  # They are in an order that misleads.
    return found
