"""Statuses that travel as a header line instead of a body: one table for both sides.

A status message has the header block `NATS/1.0 <code> <text>\\r\\n[Key: value\\r\\n]\\r\\n`.
Texts with holes are filled with `str.format`.
"""

Line = tuple[int, str]

IDLE_HEARTBEAT: Line = (100, "Idle Heartbeat")
FLOW_CONTROL: Line = (100, "FlowControl Request")
END_OF_BATCH: Line = (204, "EOB")
BAD_REQUEST: Line = (400, "Bad Request - {reason}")
NO_MESSAGES: Line = (404, "No Messages")
MESSAGE_NOT_FOUND: Line = (404, "Message Not Found")
NO_RESULTS: Line = (404, "No Results")
REQUEST_TIMEOUT: Line = (408, "Request Timeout")
REQUESTS_PENDING: Line = (408, "Requests Pending")
INTEREST_EXPIRED: Line = (408, "Interest Expired")
EMPTY_REQUEST: Line = (408, "Empty Request")
MALFORMED_REQUEST: Line = (408, "Malformed Request")
BAD_DIRECT_REQUEST: Line = (408, "Bad Request")
NO_FLOW_RESPONSE: Line = (408, "No Flow Response")
NO_INTEREST: Line = (408, "No Interest")
MAX_WAITING: Line = (409, "Exceeded MaxWaiting")
MAX_REQUEST_BATCH: Line = (409, "Exceeded MaxRequestBatch of {limit}")
MAX_REQUEST_EXPIRES: Line = (409, "Exceeded MaxRequestExpires of {limit}")
MAX_REQUEST_BYTES: Line = (409, "Exceeded MaxRequestMaxBytes of {limit}")
MESSAGE_SIZE: Line = (409, "Message Size Exceeds MaxBytes")
BATCH_COMPLETED: Line = (409, "Batch Completed")
CONSUMER_DELETED: Line = (409, "Consumer Deleted")
LEADERSHIP_CHANGE: Line = (409, "Leadership Change")
CONSUMER_IS_PUSH: Line = (409, "Consumer is push based")
SERVER_SHUTDOWN: Line = (409, "Server Shutdown")
REQUIRED_API_LEVEL: Line = (412, "Required Api Level")
TOO_MANY_RESULTS: Line = (413, "Too Many Results")
PIN_ID_MISMATCH: Line = (423, "Nats-Pin-Id mismatch")
WRONG_PIN_ID: Line = (423, "Nats-Wrong-Pin-Id")
TOO_MANY_REQUESTS: Line = (429, "Too Many Requests")
NO_RESPONDERS: Line = (503, "")

PENDING_MESSAGES = "Nats-Pending-Messages"
PENDING_BYTES = "Nats-Pending-Bytes"
LAST_CONSUMER = "Nats-Last-Consumer"
LAST_STREAM = "Nats-Last-Stream"
CONSUMER_STALLED = "Nats-Consumer-Stalled"
PIN_ID = "Nats-Pin-Id"
NUM_PENDING = "Nats-Num-Pending"
LAST_SEQUENCE = "Nats-Last-Sequence"
UP_TO_SEQUENCE = "Nats-UpTo-Sequence"


def header_block(line: Line, extra: tuple[tuple[str, str], ...] = (), **parts: object) -> bytes:
    """The bytes of a status message's headers."""
    code, text = line
    first = f"NATS/1.0 {code} {text.format(**parts) if parts else text}".rstrip()
    rest = "".join(f"{key}: {value}\r\n" for key, value in extra)
    return f"{first}\r\n{rest}\r\n".encode()


def parse_status(headers: bytes) -> tuple[int, str]:
    """Code and text of a header block; (0, "") for the headers of a real message."""
    first, _, _ = headers.partition(b"\r\n")
    if not first.startswith(b"NATS/1.0") or len(first) <= 9:
        return 0, ""
    code, _, text = first[9:].decode("utf-8", "replace").partition(" ")
    return (int(code), text) if code.isdigit() else (0, "")
