"""What is fuzzed: a target takes one input and complains if a property does not hold."""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.mutate import mutated

CORPUS = Path(__file__).parent / "corpus"
SIZE_MAX = 4096
"""Bytes of an input; what only much larger ones show is measured in tests of cost."""


class Target(ABC):
    """One border. Subclasses are made once; `run` may be called millions of times."""

    name: str
    words: Sequence[bytes] = ()
    """Pieces that mean something in this input."""
    share: float = 1.0
    """Of the inputs of a round; slow targets get less."""
    cost_s_max: float = 0.25
    """CPU seconds of one input above which it is a finding, if it happens three times."""

    @abstractmethod
    def seeds(self) -> list[bytes]:
        """Valid inputs from which others are made."""

    @abstractmethod
    def run(self, data: bytes, rng: random.Random) -> None:
        """Take one input. Any exception is a finding, AssertionError for a broken property."""

    def close(self) -> None:  # noqa: B027 (most have nothing to let go of)
        """Let go of processes."""

    def summary(self) -> str:
        """What else a run has shown, to be printed."""
        return ""

    def make(self, rng: random.Random, pool: list[bytes]) -> bytes:
        """A new input."""
        return mutated(rng, pool[int(rng.random() * len(pool))], self.words, SIZE_MAX)

    def corpus(self) -> list[tuple[str, bytes]]:
        """Inputs of the past, by file name: what once was a finding, and valid ones."""
        directory = CORPUS / self.name
        if not directory.is_dir():
            return []
        return [(path.name, path.read_bytes()) for path in sorted(directory.iterdir())]

    def keep(self, data: bytes, label: str) -> Path:
        """Put an input into the corpus."""
        directory = CORPUS / self.name
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / label
        path.write_bytes(data)
        return path
