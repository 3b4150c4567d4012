"""A part of a store, for who compares or repairs replicas."""

from typing import NamedTuple

from jsctl.broker.store.seqset import SeqSet


class Excerpt(NamedTuple):
    """What a store has between two sequences: frames of what is sound, and what is damaged."""

    up_to: int
    """Nothing is said of what lies behind it."""
    lost: SeqSet
    frames: list[bytes]
