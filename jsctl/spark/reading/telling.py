"""Tasks tell how far they are, on a core NATS subject that whoever started the job listens to.

The connection is one of its own: a lost or forbidden message must not harm the reading.
"""

import json
import time

from jsctl.errors import JsctlError
from jsctl.settings import Settings
from jsctl.spark.connection.wire import Wire, open_wire
from jsctl.spark.scan.range import Chunk, Range

TELL_S = 0.5
"""Time between two messages of a task."""


class Teller:
    """One task's progress; silent without a subject, and from the first failure on."""

    def __init__(self, settings: Settings, subject: str, wanted: Range) -> None:
        self.settings = settings
        self.subject = subject
        self.range = wanted
        self._wire: Wire | None = None
        self._rows = 0
        self._bytes = 0
        self._due = time.monotonic() + TELL_S

    def heard(self, chunk: Chunk) -> None:
        """Count a chunk; tell when it is time to."""
        if not self.subject:
            return
        self._rows += len(chunk.seqs)
        self._bytes += sum(map(len, chunk.payloads))
        if time.monotonic() >= self._due:
            self._tell(chunk.seqs[-1] if chunk.seqs else self.range.first)

    def finished(self) -> None:
        """The range is read; tell so and hang up."""
        if self.subject:
            self._tell(self.range.end - 1)
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _tell(self, seq: int) -> None:
        self._due = time.monotonic() + TELL_S
        document = {
            "stream": self.range.stream,
            "first": self.range.first,
            "last": self.range.end - 1,
            "seq": seq,
            "rows": self._rows,
            "bytes": self._bytes,
        }
        body = json.dumps(document).encode()
        try:
            if self._wire is None:
                self._wire = open_wire(self.settings)
            self._wire.answer_pings()
            line = b"PUB %s %d\r\n%s\r\n" % (self.subject.encode(), len(body), body)
            self._wire.send(line)
        except (JsctlError, OSError):
            self.subject = ""
