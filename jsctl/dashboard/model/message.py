"""One message of a stream, as plain data."""

from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as it lies in the stream."""

    seq: int
    time_ns: int
    subject: str
    headers: tuple[tuple[str, str], ...]
    data: bytes
