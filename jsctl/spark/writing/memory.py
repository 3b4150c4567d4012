"""What a query remembers of its writing, in a key-value bucket of the target's own server.

One record a query and sink: the last batch that was written whole, the run that wrote it, and how
far the target streams were. It is written when Spark commits a batch at the sink, which is before
Spark notes it in the checkpoint; so a batch that is written again is known.
"""

import json
from dataclasses import dataclass, field

from jsctl.api.codec import decode
from jsctl.api.errors import ApiError
from jsctl.api.requests import MsgGetRequest
from jsctl.api.stream import PubAck, RawStreamMsg, StreamConfig
from jsctl.api.subjects import API_PREFIX
from jsctl.api.times import parse_time
from jsctl.api.words import Discard
from jsctl.errors import JsctlError, RequestFailed
from jsctl.spark.connection.jetstream import (
    NO_MESSAGE_FOUND,
    NO_ROOM_ERRORS,
    NO_ROOM_HINT,
    STREAM_NOT_FOUND,
    JetStream,
)

NAME_IN_USE = 10058
WRONG_LAST_SEQUENCE = 10071
EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"


@dataclass(frozen=True, slots=True)
class Record:
    """`batch` and all before it are written. `time_ns` is when the server stored the record."""

    run: str
    batch: int
    positions: dict[str, int] = field(default_factory=dict)
    time_ns: int = 0


class Memory:
    """The record of one query and sink."""

    def __init__(self, js: JetStream, bucket: str, key: str) -> None:
        self._js = js
        self._bucket = bucket
        self._key = key
        self._stream = f"KV_{bucket}"
        self._subject = f"$KV.{bucket}.{key}"

    def load(self) -> Record | None:
        """What is remembered, None if nothing is. Raises JsctlError for another's record."""
        try:
            request = MsgGetRequest(last_by_subj=self._subject)
            answer = self._js.ask("stream_msg_get", self._stream, body=request)
        except ApiError as error:
            if error.err_code in (NO_MESSAGE_FOUND, STREAM_NOT_FOUND):
                return None
            raise RequestFailed(error, prefix=f"bucket {self._bucket}") from error
        message = decode(RawStreamMsg, answer["message"])
        try:
            document = json.loads(message.data)
            positions = {str(name): int(seq) for name, seq in document["positions"].items()}
            return Record(
                str(document["run"]), int(document["batch"]), positions, parse_time(message.time)
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise JsctlError(
                f"bucket {self._bucket}: the key {self._key} holds something else",
                hints=("give the query another stateBucket",),
            ) from None

    def begin(self, record: Record, replicas: int) -> Record:
        """Store the first record unless there is one; what is stored then."""
        self._make_bucket(replicas)
        try:
            self._put(record, {EXPECTED_LAST: "0"})
        except ApiError as error:
            if error.err_code != WRONG_LAST_SEQUENCE:
                raise self._failed(error) from error
        found = self.load()
        if found is None:
            raise JsctlError(f"bucket {self._bucket}: the key {self._key} was deleted meanwhile")
        return found

    def save(self, record: Record) -> None:
        """Store a record in place of the one before."""
        try:
            self._put(record, {})
        except ApiError as error:
            raise self._failed(error) from error

    def _failed(self, error: ApiError) -> JsctlError:
        hints = (NO_ROOM_HINT,) if error.err_code in NO_ROOM_ERRORS else ()
        return RequestFailed(error, prefix=f"bucket {self._bucket}", hints=hints)

    def _put(self, record: Record, headers: dict[str, str]) -> None:
        document = {"run": record.run, "batch": record.batch, "positions": record.positions}
        prefix = "" if self._js.prefix == API_PREFIX else self._js.prefix.decode()
        payload = json.dumps(document).encode()
        decode(PubAck, self._js.publish(prefix + self._subject, headers, payload))

    def _make_bucket(self, replicas: int) -> None:
        config = StreamConfig(
            name=self._stream,
            description="what Spark queries wrote, so that restarts write nothing twice",
            subjects=(f"$KV.{self._bucket}.>",),
            max_msgs=-1,
            max_bytes=-1,
            max_consumers=-1,
            max_msgs_per_subject=1,
            discard=Discard.NEW,
            num_replicas=replicas,
            allow_rollup_hdrs=True,
            deny_delete=True,
            allow_direct=True,
        )
        try:
            self._js.ask("stream_create", self._stream, body=config)
        except ApiError as error:
            if error.err_code != NAME_IN_USE:
                raise RequestFailed(
                    error,
                    prefix=f"cannot make bucket {self._bucket}",
                    hints=("it remembers what was written; guarantee=at-least-once needs none",),
                ) from error
