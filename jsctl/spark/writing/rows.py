"""Arrow batches -> messages to publish; which columns a sink takes and what it makes of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from jsctl.errors import UsageError
from jsctl.spark.writing.identity import Identities

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

MSG_ID = "Nats-Msg-Id"
EXPECTED_STREAM = "Nats-Expected-Stream"
TTL = "Nats-TTL"
SINK_TYPES: dict[str, tuple[str, ...]] = {
    "subject": ("string",),
    "data": ("binary", "string"),
    "headers": ("map<string,array<string>>", "map<string,string>"),
    "msg_id": ("string",),
    "ttl": ("string", "int", "bigint"),
    "stream": ("string",),
    "seq": ("bigint",),
    "timestamp": ("timestamp",),
    "ts_ns": ("bigint",),
}
"""Columns and the types they may have. The last four are those of a source: the first two of them
tell rows apart, the others are taken and not used."""
_BAD_NAME = set(":\r\n \t")
_BAD_VALUE = set("\r\n")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message. `block` is the header block, `id` its message id."""

    subject: str
    id: str
    block: bytes
    payload: bytes


def check_columns(schema: "StructType", subject: str) -> None:
    """Raises UsageError for columns that a sink cannot take."""
    names = schema.fieldNames()
    for column in schema.fields:
        wanted = SINK_TYPES.get(column.name)
        kind = column.dataType.simpleString()
        if wanted is None:
            raise UsageError(
                f"the sink does not know the column {column.name}",
                hints=(f"it takes {', '.join(SINK_TYPES)}; put others into data, as JSON",),
            )
        if kind not in wanted:
            raise UsageError(f"column {column.name} is {' or '.join(wanted)}, not {kind}")
    if not subject and "subject" not in names:
        raise UsageError("there is neither a column subject nor option subject")
    if "data" not in names:
        raise UsageError("there is no column data")


class Encoder:
    """Makes messages of batches, in order."""

    def __init__(self, subject: str, expect_stream: str, identities: Identities) -> None:
        """`subject` is that of all messages; empty if a column has it."""
        self._subject = subject
        self._identities = identities
        self._expected = f"{EXPECTED_STREAM}: {expect_stream}\r\n" if expect_stream else ""

    def messages(self, batch: pa.RecordBatch) -> Iterator[Outgoing]:
        """All rows of a batch. Raises UsageError for a row that cannot be a message."""
        get = self._column(batch)
        subjects, payloads = get("subject"), get("data")
        headers, ids, ttls = get("headers"), get("msg_id"), get("ttl")
        streams, seqs = get("stream"), get("seq")
        for row in range(batch.num_rows):
            subject = self._subject or subjects[row]
            if not subject:
                raise UsageError("a row has no subject")
            if any(c in subject for c in " \t\r\n"):
                raise UsageError(f"{subject!r} is not a subject")
            payload = payloads[row] or b""
            block = header_lines(headers[row], subject)
            ttl = ttls[row]
            if ttl is not None:
                if not _BAD_VALUE.isdisjoint(str(ttl)):
                    raise UsageError(f"{ttl!r} is not a time to live (subject {subject})")
                block += f"{TTL}: {ttl}\r\n"
            lines = block.encode()
            # Servers take no notice of blanks around it, and who reads ids back does not see them.
            message_id = None if ids[row] is None else ids[row].strip(" \t")
            if message_id is None:
                if "msg_id" in batch.schema.names:
                    raise UsageError(
                        f"a row to {subject} has no msg_id, although there is a column"
                    )
                source = self._identities.source(streams[row], seqs[row])
                message_id = self._identities.of(source, subject.encode(), lines, payload)
            elif not message_id or not _BAD_VALUE.isdisjoint(message_id):
                raise UsageError(f"{message_id!r} is not a message id (subject {subject})")
            head = f"NATS/1.0\r\n{MSG_ID}: {message_id}\r\n{self._expected}".encode()
            yield Outgoing(subject, message_id, head + lines + b"\r\n", payload)

    @staticmethod
    def _column(batch: pa.RecordBatch) -> Callable[[str], list]:  # type: ignore[type-arg]
        nothing = [None] * batch.num_rows

        def get(name: str) -> list:  # type: ignore[type-arg] # values of any column
            if name not in batch.schema.names:
                return nothing
            column = batch.column(name)
            if name == "data" and not pa.types.is_binary(column.type):
                column = column.cast(pa.binary())
            return list(column.to_pylist())

        return get


def header_lines(
    headers: "list[tuple[str, str | list[str | None] | None]] | None", subject: str
) -> str:
    """A row's headers as lines; a message id among them is left out, the sink makes its own.

    Raises UsageError for names and values that would break the block apart.
    """
    if not headers:
        return ""
    lines = []
    for name, values in headers:
        if not name or not _BAD_NAME.isdisjoint(name):
            raise UsageError(f"{name!r} is not the name of a header (subject {subject})")
        if name.lower() == MSG_ID.lower():
            continue
        for value in [values] if isinstance(values, str) else values or []:
            if value is None:
                raise UsageError(f"header {name} has a value that is null (subject {subject})")
            if not _BAD_VALUE.isdisjoint(value):
                raise UsageError(f"header {name} has a line break (subject {subject})")
            lines.append(f"{name}: {value}\r\n")
    return "".join(lines)
