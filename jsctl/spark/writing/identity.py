"""Which row is which: message ids that a repeated attempt makes again, in whatever order.

A row's number would not do: after a shuffle the order of rows may differ between attempts, the
same number would name another row, and the server would drop a message as a duplicate that was
never stored. In order of preference an id is what the column `msg_id` says; else it is made of the
row's content, with the message it came from (`stream`, `seq`) if those columns are there, else
with the partition, also where they are null. Equal rows of one partition are counted.
"""

from collections import defaultdict
from dataclasses import dataclass
from hashlib import blake2b

DIGEST_BYTES = 12
"""Two different rows of a micro-batch of a million get the same id once in 10^16 batches."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an id is unique in. `batch` is -1 for a job outside of streaming queries."""

    query: str
    run: str
    batch: int
    sink: str

    @property
    def streaming(self) -> bool:
        """Whether attempts of other runs have to be reckoned with."""
        return self.batch >= 0

    @property
    def name(self) -> str:
        """The key of what is remembered of the query."""
        return f"{self.query}.{self.sink}" if self.sink else self.query

    @property
    def text(self) -> str:
        """The same for all attempts at the same rows, and for nothing else."""
        return f"{self.name}/{self.batch}"


class Identities:
    """Makes the ids of one partition's rows."""

    def __init__(self, scope: Scope, partition: int, *, with_source: bool) -> None:
        where = scope.text if with_source else f"{scope.text}/{partition}"
        self._seed = blake2b(where.encode(), digest_size=DIGEST_BYTES)
        self._seen: defaultdict[bytes, int] = defaultdict(int)
        self._nowhere = f"/{partition}" if with_source else ""
        self._prefix = f"{scope.query[:8]}.{max(scope.batch, 0)}."

    def source(self, stream: str | None, seq: int | None) -> bytes:
        """Where a row came from; one that came from no message is told apart by its partition."""
        nowhere = self._nowhere if stream is None or seq is None else ""
        return f"{stream}:{seq}{nowhere}".encode()

    def of(self, *parts: bytes) -> str:
        """The id of a row with this content."""
        made = self._seed.copy()
        for part in parts:
            made.update(b"%d:" % len(part))
            made.update(part)
        digest = made.digest()
        count = self._seen[digest]
        self._seen[digest] = count + 1
        text = self._prefix + digest.hex()
        return f"{text}.{count}" if count else text
