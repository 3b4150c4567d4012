"""The few JetStream requests that readers and writers need, over one blocking connection.

A connection that broke is made anew, to whatever server is up; requests are repeated until the
outage has lasted too long. All of them may be repeated: they read, or say the same thing twice.
"""

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from jsctl.api.codec import decode, dumps
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.errors import ApiError
from jsctl.api.requests import (
    ApiPagedRequest,
    ConsumerCreateRequest,
    MsgGetRequest,
    StreamNamesRequest,
)
from jsctl.api.stream import RawStreamMsg, StreamInfo
from jsctl.api.subjects import API_PREFIX, api_subject, domain_prefix
from jsctl.api.times import SECOND_NS, parse_time
from jsctl.api.words import AckPolicy, ConsumerAction, DeliverPolicy
from jsctl.errors import JsctlError, NotFound, RequestFailed, Unreachable
from jsctl.settings import Settings
from jsctl.spark.connection.login import Address, discovered
from jsctl.spark.connection.wire import Closed, Wire, open_wire
from jsctl.spark.options import ConnectionOptions

T = TypeVar("T")

STREAM_NOT_FOUND = 10059
NO_MESSAGE_FOUND = 10037
NO_ROOM_ERRORS = frozenset({10002, 10023, 10028, 10047, 10077})
"""Refusals that end when there is room: of the account, the server or the stream."""
NO_ROOM_HINT = (
    "`jsctl account info` and `jsctl stream info` show the limits; make room and start it again:"
    " a query with a checkpoint goes on where it was"
)
CONSUMER_NOT_FOUND = 10014
PAUSE_S = 0.1
INACTIVE_NS = 60 * SECOND_NS
"""A consumer whose reader was killed is deleted by the server after so long."""
TEMPORARY_ERRORS = frozenset({10004, 10008, 10009, 10118, 10119, 10163})
"""Answers of a cluster that has no leader at the moment."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer that was made: its name and how many messages wait for it."""

    stream: str
    name: str
    pending: int


def api_prefix(settings: Settings) -> bytes:
    """The prefix of API subjects, with its dot."""
    given = settings.connection.jetstream_api_prefix
    if given:
        return given.rstrip(".").encode() + b"."
    domain = settings.connection.jetstream_domain
    return domain_prefix(domain) if domain else API_PREFIX


class JetStream:
    """Requests, one after the other."""

    def __init__(self, options: ConnectionOptions, *, patient: bool = False) -> None:
        """Nothing is connected before the first request.

        That first one fails at once when no server is there, unless `patient`: for whoever knows
        that the servers were there a moment ago.
        """
        self.settings = options.settings
        self.outage_s = options.outage_ns / SECOND_NS
        self.prefix = api_prefix(options.settings)
        self._wire: Wire | None = None
        self._known: tuple[Address, ...] = ()
        self._patient = patient

    @property
    def wire(self) -> Wire:
        """The connection, made when there is none. Raises Unreachable, NotAllowed, UsageError."""
        if self._wire is None:
            self._wire = open_wire(self.settings, self._known)
            urls = self._wire.info.get("connect_urls")
            if isinstance(urls, list):
                self._known = tuple(discovered(str(url), self._wire.address) for url in urls)
        return self._wire

    def unsubscribe(self, wire: Wire, sid: bytes) -> bool:
        """Stop listening; whether the connection is still the one in use, and works."""
        if self._wire is not wire:
            return False
        try:
            wire.send(b"UNSUB %s\r\n" % sid)
        except Closed:
            self.drop()
        return self._wire is wire

    def drop(self) -> None:
        """Forget the connection; the next request makes another."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def __enter__(self) -> "JetStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def persist(self, body: Callable[[], T]) -> T:
        """Call until it succeeds or has failed for as long as an outage may last.

        Only what another try can cure is tried again. Raises what the last try raised.
        """
        end = time.monotonic() + self.outage_s
        first = not self._patient and self._wire is None and not self._known
        while True:
            try:
                return body()
            except (Unreachable, TimeoutError) as error:
                hopeless = (first and self._wire is None) or self._without_jetstream()
                if isinstance(error, Closed | TimeoutError):
                    self.drop()
                if hopeless or time.monotonic() + PAUSE_S > end:
                    raise
            time.sleep(PAUSE_S)

    def ask(self, operation: str, *names: str, body: object = None) -> dict[str, object]:
        """The answer as a document. Raises ApiError, Unreachable and what a connection raises."""
        payload = b"" if body is None else dumps(body)
        subject = api_subject(operation, *names, prefix=self.prefix).decode()
        return self._document(subject, payload, b"")

    def publish(
        self, subject: str, headers: Mapping[str, str], payload: bytes
    ) -> dict[str, object]:
        """Store one message; the acknowledgement. Repeated in an outage. Raises as `ask`."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        block = f"NATS/1.0\r\n{lines}\r\n".encode() if headers else b""
        return self._document(subject, payload, block)

    def _document(self, subject: str, payload: bytes, block: bytes) -> dict[str, object]:
        return self.persist(lambda: self._tried(subject, payload, block))

    def _tried(self, subject: str, payload: bytes, block: bytes = b"") -> dict[str, object]:
        """One request, not repeated. Raises ApiError, Unreachable."""
        document = json.loads(self.wire.request(subject, payload, headers=block).payload)
        problem = document.get("error")
        if not isinstance(problem, dict):
            return dict(document)
        code = int(problem.get("code", 0))
        error = ApiError(code, int(problem.get("err_code", 0)), str(problem.get("description", "")))
        if error.err_code in TEMPORARY_ERRORS:
            raise Unreachable(f"{subject}: {error}")
        raise error

    def info(self, stream: str) -> StreamInfo:
        """A stream. Raises NotFound."""
        try:
            return decode(StreamInfo, self.ask("stream_info", stream))
        except ApiError as error:
            raise self._explained(error, stream) from error

    def names(self, subject: str = "") -> list[str]:
        """All streams, or those that store a subject."""
        found: list[str] = []
        while True:
            request = StreamNamesRequest(page=ApiPagedRequest(offset=len(found)), subject=subject)
            page = self.ask("stream_names", body=request)
            names = page.get("streams") or []
            assert isinstance(names, list)
            found += [str(name) for name in names]
            if not names or len(found) >= int(str(page.get("total", 0))):
                return sorted(found)

    def names_like(self, pattern: str) -> list[str]:
        """The streams whose whole name matches a regular expression."""
        return [name for name in self.names() if re.fullmatch(pattern, name)]

    def message_from(self, stream: str, seq: int, subject: str = ">") -> RawStreamMsg | None:
        """The first message at or after a sequence that matches; the stream's leader answers."""
        request = MsgGetRequest(seq=seq, next_by_subj=subject)
        try:
            answer = self.ask("stream_msg_get", stream, body=request)
        except ApiError as error:
            if error.err_code == NO_MESSAGE_FOUND:
                return None
            raise self._explained(error, stream) from error
        return decode(RawStreamMsg, answer["message"])

    def next_sequence(self, stream: str, seq: int, filters: tuple[str, ...]) -> int | None:
        """The lowest sequence at or after `seq` that any filter matches, as the leader knows it."""
        found = [self.message_from(stream, seq, subject) for subject in filters or (">",)]
        return min((message.seq for message in found if message is not None), default=None)

    def sequence_at(self, info: StreamInfo, time_ns: int) -> int:
        """The first sequence stored at or after a time; one behind the last if there is none.

        Times grow with sequences, so this halves the range: some twenty requests.
        """
        low, high = max(info.state.first_seq, 1), info.state.last_seq + 1
        while low < high:
            middle = (low + high) // 2
            message = self.message_from(info.config.name, middle)
            if message is None or parse_time(message.time) >= time_ns:
                high = middle
            else:
                low = message.seq + 1
        return low

    def make_consumer(
        self, stream: str, seq: int, filters: tuple[str, ...], *, headers_only: bool = False
    ) -> Consumer:
        """A consumer for one reader: in memory, unacknowledged, gone soon after its reader.

        Each try has a name of its own: a cluster may have given the one before to a server that
        just died, and would never answer for that name.
        """
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=max(seq, 1),
            ack_policy=AckPolicy.NONE,
            filter_subject=filters[0] if len(filters) == 1 else "",
            filter_subjects=filters if len(filters) > 1 else (),
            inactive_threshold=INACTIVE_NS,
            num_replicas=1,
            mem_storage=True,
            headers_only=headers_only,
        )

        def made() -> Consumer:
            named = replace(config, name=f"jsctl_{secrets.token_hex(8)}")
            request = ConsumerCreateRequest(
                stream_name=stream, config=named, action=ConsumerAction.CREATE
            )
            subject = api_subject("consumer_create", stream, named.name, prefix=self.prefix)
            answer = self._tried(subject.decode(), dumps(request))
            return Consumer(stream, named.name, decode(ConsumerInfo, answer).num_pending)

        try:
            return self.persist(made)
        except ApiError as error:
            raise self._explained(error, stream) from error

    def delete_consumer(self, consumer: Consumer) -> None:
        """Delete it if the server can be asked now; otherwise it goes by itself."""
        if self._wire is None:
            return
        subject = api_subject("consumer_delete", consumer.stream, consumer.name, prefix=self.prefix)
        try:
            self._wire.request(subject.decode())
        except (JsctlError, OSError):
            self.drop()

    def _without_jetstream(self) -> bool:
        """Whether the server says that it has no JetStream; others in a cluster may have it."""
        wire = self._wire
        return wire is not None and "cluster" not in wire.info and not wire.info.get("jetstream")

    @staticmethod
    def _explained(error: ApiError, stream: str) -> JsctlError:
        if error.err_code == STREAM_NOT_FOUND:
            return NotFound(
                f"stream {stream} does not exist", hints=("`jsctl stream ls` shows what there is",)
            )
        return RequestFailed(error, prefix=f"stream {stream}")
