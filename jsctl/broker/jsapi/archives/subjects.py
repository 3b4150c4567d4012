"""What servers of a cluster ask of each other for a restore; clients cannot publish there.

Requests of clients are captured on subjects of the API alone, and only servers put others into
the frames that they send to each other.
"""

from jsctl.broker.jetstream.requests import ApiRequest

ID_LENGTH = 22
_INTERNAL = b"$JSI."
BEGIN = b"$JSI.RESTORE.BEGIN"
"""Receive an archive: the payload is the assignment that the stream will have."""
DONE = b"$JSI.RESTORE.DONE."
"""Where the answer to that goes; followed by the id of the restore."""


def is_internal(request: ApiRequest) -> bool:
    """Whether a server asks, not a client."""
    return request.subject.startswith(_INTERNAL)
