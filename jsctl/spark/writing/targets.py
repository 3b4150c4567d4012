"""The streams that messages end up in: which one stores a subject, and what it already holds.

A stream can be a target of exactly-once writing only if a message stays readable for as long as a
restart may need to see it; what makes that impossible is refused before anything is published.
"""

import re

from jsctl.api.stream import StreamInfo
from jsctl.api.times import SECOND_NS, parse_time
from jsctl.api.words import Retention
from jsctl.errors import Conflict, NotFound, UsageError
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import ConnectionOptions, Guarantee, SinkOptions
from jsctl.spark.scan.direct import subject_matcher
from jsctl.spark.scan.range import Range
from jsctl.spark.scan.read import read
from jsctl.spark.writing.memory import Record

SUBJECTS_KEPT = 100_000
CLOCK_MARGIN_NS = 5 * SECOND_NS
"""How much clocks of servers may differ that lead a stream and the bucket."""
_ID = re.compile(rb"\r\nNats-Msg-Id:[ \t]*([^\r\n]+)", re.IGNORECASE)
AT_LEAST_ONCE = "guarantee=at-least-once writes there without that promise"


class Targets:
    """Finds and checks the streams of subjects; asks the server once a stream."""

    def __init__(self, js: JetStream, options: SinkOptions) -> None:
        self._js = js
        self._options = options
        self._streams: dict[str, StreamInfo] = {}
        self._by_subject: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """The streams found so far."""
        return list(self._streams)

    @property
    def replicas(self) -> int:
        """The most replicas that any of them has."""
        return max((info.config.num_replicas for info in self._streams.values()), default=1)

    def of(self, subject: str) -> str:
        """The stream that stores a subject. Raises NotFound, UsageError."""
        found = self._by_subject.get(subject)
        if found is None:
            found = self._find(subject)
            if len(self._by_subject) >= SUBJECTS_KEPT:
                self._by_subject.clear()
            self._by_subject[subject] = found
        return found

    def _find(self, subject: str) -> str:
        expected = self._options.expect_stream
        if expected:
            if expected not in self._streams:
                self._take(self._js.info(expected))
            return expected
        for name, info in self._streams.items():
            subjects = info.config.subjects
            if subjects and subject_matcher(subjects)(subject.encode()):
                return name
        names = self._js.names(subject)
        if not names:
            raise NotFound(
                f"no stream stores the subject {subject}",
                hints=("make one, or name it with option expectStream if subjects are mapped",),
            )
        self._take(self._js.info(names[0]))
        return names[0]

    def _take(self, info: StreamInfo) -> None:
        if info.config.no_ack:
            raise UsageError(
                f"stream {info.config.name} does not acknowledge, so nothing can be promised",
                hints=(f"`jsctl stream edit {info.config.name} --ack`",),
            )
        if self._options.guarantee is Guarantee.EXACTLY_ONCE:
            check_keeps(info)
        self._streams[info.config.name] = info


def check_keeps(info: StreamInfo) -> None:
    """Raises UsageError when messages leave a stream in ways that hide what was written."""
    name, config = info.config.name, info.config
    why = ""
    if config.retention is not Retention.LIMITS:
        why = "removes messages that were acknowledged"
    elif config.max_msgs_per_subject > 0:
        why = f"keeps only {config.max_msgs_per_subject} messages of a subject"
    if why:
        raise UsageError(
            f"exactly-once is impossible: stream {name} {why}, so a restart cannot see what was"
            " written before",
            hints=(AT_LEAST_ONCE,),
        )


def ids_behind(connection: ConnectionOptions, stream: str, position: int) -> set[str]:
    """The message ids that a stream holds behind a sequence.

    Raises Conflict when messages behind it are gone already.
    """
    found: set[bytes] = set()
    with JetStream(connection, patient=True) as js:
        info = js.info(stream)
        if position + 1 < info.state.first_seq:
            raise Conflict(
                f"exactly-once is impossible: stream {stream} has lost the sequences"
                f" {position + 1} to {info.state.first_seq - 1} that were written since the last"
                " commit",
                hints=("keep messages longer than a restart takes", AT_LEAST_ONCE),
            )
        wanted = Range(
            stream,
            info.created,
            position + 1,
            info.state.last_seq + 1,
            headers_only=True,
            complete=False,
        )
        for chunk in read(js, wanted):
            for head in chunk.heads:
                if head and (one := _ID.search(head)) is not None:
                    found.add(one[1].strip())
    return {one.decode(errors="replace") for one in found}


def position_of(js: JetStream, stream: str, record: Record) -> int:
    """The sequence behind which a stream was written to since a batch was remembered.

    As remembered, else by time. Raises Conflict when the stream ends before it.
    """
    info = js.info(stream)
    if stream not in record.positions:
        return js.sequence_at(info, record.time_ns - CLOCK_MARGIN_NS) - 1
    if parse_time(info.created) > record.time_ns:
        return max(info.config.first_seq, 1) - 1
    position, last = record.positions[stream], info.state.last_seq
    if position > last:
        raise Conflict(
            f"exactly-once is impossible: stream {stream} ends at sequence {last}, but the query"
            f" wrote up to {position}: it was made again, or an older state restored",
            hints=("begin with a new checkpoint", AT_LEAST_ONCE),
        )
    return position
