"""Where a source goes on that this stream has no position of: its newest message says so.

Streams that were restored from elsewhere have the headers of what they sourced, but no positions.
A long stream is looked at in steps.
"""

from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.sourcing.names import origin_name, read_source_header
from jsctl.broker.jetstream.sourcing.origin import UpstreamOrigin
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.publish_headers import STREAM_SOURCE
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.store.contents import Contents

STEP_MESSAGES = 1_024


class PositionSearch:
    """One walk from the end to the begin. `found` is the position, once `step` says so."""

    def __init__(self, origin: UpstreamOrigin, store: Contents) -> None:
        self.found = SourcePosition(0, "")
        self._names = (origin.key, origin_name(origin.declared), origin.declared.name)
        self._store = store
        self._below = store.last_seq + 1

    def step(self) -> bool:
        """Look at some more messages; whether the walk is over."""
        first = max(self._below - STEP_MESSAGES, self._store.first_seq)
        rows = []
        for seq in self._store.live_seqs(first, self._below - 1, STEP_MESSAGES):
            try:
                row = self._store.load(seq)
            except Damaged:
                continue
            if row is not None and row.headers:
                rows.append(row)
        for row in reversed(rows):
            told = blocks.get(row.headers, STREAM_SOURCE)
            read = read_source_header(told) if told else None
            if read is not None and read[0] in self._names:
                self.found = read[1]
                return True
        self._below = first
        return first <= self._store.first_seq
