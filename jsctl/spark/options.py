"""What may be written behind `.option(...)`: one table, and the checked values.

Knows nothing of Spark, so a pipeline file can be checked without starting Java. Names are not
case sensitive, as everywhere in Spark. Raises UsageError that names the option.
"""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from jsctl.api.times import format_duration, parse_duration, parse_time
from jsctl.errors import UsageError
from jsctl.settings import Settings, load

E = TypeVar("E", bound=Enum)


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, what it is for, its default, and whether it is a secret."""

    name: str
    help: str
    default: str = ""
    secret: bool = False


CONNECTION_OPTIONS = (
    Option("servers", "Server URLs, separated by commas"),
    Option("context", "Name of a context of `jsctl context`, or the path of its file"),
    Option("user", "User name"),
    Option("password", "Password", secret=True),
    Option("token", "Token", secret=True),
    Option("creds", "Path of a credentials file; read where a task runs"),
    Option("nkey", "Path of a file with an NKEY seed; read where a task runs"),
    Option("jwt", "User JWT", secret=True),
    Option("seed", "Seed that belongs to the JWT", secret=True),
    Option("tlsca", "Path of the certificate authorities"),
    Option("tlscert", "Path of the client's certificate"),
    Option("tlskey", "Path of the client's key"),
    Option("tlsfirst", "TLS before the server's greeting", "false"),
    Option("domain", "JetStream domain"),
    Option("apiPrefix", "Prefix of the JetStream API instead of `$JS.API`"),
    Option("inboxPrefix", "Prefix of reply subjects", "_INBOX"),
    Option("timeout", "How long one request may take", "5s"),
    Option("outageTimeout", "How long a task goes on without an answer of any server", "60s"),
)
"""How to reach the servers; of source and sink."""

SOURCE_OPTIONS = (
    Option("stream", "Streams to read, separated by commas"),
    Option("streamPattern", "Regular expression for whole stream names"),
    Option("filterSubjects", "Only these subjects, separated by commas; wildcards allowed"),
    Option("startingOffsets", 'earliest, latest or {"STREAM": sequence}', "earliest"),
    Option("startingTimestamp", "Start at this time (RFC 3339 or milliseconds since 1970)"),
    Option("endingOffsets", 'latest or {"STREAM": first sequence not read}; batch only', "latest"),
    Option("endingTimestamp", "Read what was stored before this time; batch only"),
    Option("maxOffsetsPerTrigger", "At most so many sequences a micro-batch, all streams"),
    Option("minOffsetsPerTrigger", "Wait for so many sequences before a micro-batch", "1"),
    Option("maxTriggerDelay", "How long to wait for minOffsetsPerTrigger", "15m"),
    Option("maxBytesPerTrigger", "About so many bytes a micro-batch, from the mean message size"),
    Option("minPartitions", "At least so many tasks; by default one per core for large ranges"),
    Option("maxRecordsPerPartition", "At most so many sequences a task"),
    Option("failOnDataLoss", "Fail when messages are gone that should be read", "true"),
    Option("includeHeaders", "Add the column `headers`", "false"),
    Option("readMode", "auto, consumer or direct", "auto"),
    Option("progressSubject", "Tasks tell on this subject how far they are, twice a second"),
    Option("onCommit", "none, or purge: delete what was read and committed", "none"),
)
"""What to read."""

SINK_OPTIONS = (
    Option("subject", "Subject of all messages, instead of a column `subject`"),
    Option("expectStream", "Fail unless this stream stores the messages"),
    Option("guarantee", "exactly-once or at-least-once", "exactly-once"),
    Option("stateBucket", "Key-value bucket that remembers what a query wrote", "JSCTL_SPARK"),
    Option("sinkName", "Name of this sink within its query; needed in foreachBatch"),
    Option("maxInFlight", "Messages sent and not yet acknowledged, per task", "4096"),
    Option("ackTimeout", "How long an acknowledgement may take before the task looks again", "30s"),
)
"""Where and how to write."""

SPARK_OPTIONS = ("path", "checkpointlocation", "queryname")
"""What Spark itself hands over."""
_FLAGS = {
    "servers": "url",
    "user": "user",
    "password": "password",
    "token": "token",
    "creds": "creds",
    "nkey": "nkey",
    "jwt": "user_jwt",
    "seed": "user_seed",
    "tlsca": "ca",
    "tlscert": "cert",
    "tlskey": "key",
    "tlsfirst": "tls_first",
    "domain": "jetstream_domain",
    "apiPrefix": "jetstream_api_prefix",
    "inboxPrefix": "inbox_prefix",
}
"""Option -> key of `Settings.connection`."""


class ReadMode(Enum):
    """How messages are fetched."""

    AUTO = "auto"
    CONSUMER = "consumer"
    DIRECT = "direct"


class OnCommit(Enum):
    """What happens at the server when a micro-batch is committed."""

    NONE = "none"
    PURGE = "purge"


class Guarantee(Enum):
    """What a sink promises."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


EARLIEST = -2
LATEST = -1


@dataclass(frozen=True, slots=True)
class Position:
    """A place in streams: one for all, one each, or a time.

    `everywhere` is EARLIEST or LATEST; `each` maps streams to sequences (or those two);
    `time_ns` beats both and is None when no time was given.
    """

    everywhere: int = EARLIEST
    each: Mapping[str, int] = field(default_factory=dict)
    time_ns: int | None = None

    def of(self, stream: str) -> int:
        """The sequence, EARLIEST or LATEST of a stream; times are not looked at."""
        return self.each.get(stream, self.everywhere)


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How to reach the servers. `outage_ns`: without any answer for so long a task fails."""

    settings: Settings
    outage_ns: int


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What to read and how, checked. Counts are None where no limit was given."""

    connection: ConnectionOptions
    streams: tuple[str, ...]
    stream_pattern: str
    filter_subjects: tuple[str, ...]
    start: Position
    end: Position
    max_offsets: int | None
    min_offsets: int
    max_trigger_delay_ns: int
    max_bytes: int | None
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    read_mode: ReadMode
    on_commit: OnCommit
    progress_subject: str = ""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where to write and with which promise, checked. `subject` is empty if a column has it."""

    connection: ConnectionOptions
    subject: str
    expect_stream: str
    guarantee: Guarantee
    state_bucket: str
    sink_name: str
    max_in_flight: int
    ack_timeout_ns: int


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """The checked options of a read. Raises UsageError; NotFound for an unknown context."""
    words = _Words(given, CONNECTION_OPTIONS + SOURCE_OPTIONS)
    made = SourceOptions(
        connection=_connection(words),
        streams=words.names("stream"),
        stream_pattern=words.text("streamPattern"),
        filter_subjects=words.names("filterSubjects"),
        start=_position(words, "startingOffsets", "startingTimestamp", EARLIEST),
        end=_position(words, "endingOffsets", "endingTimestamp", LATEST),
        max_offsets=words.maybe_count("maxOffsetsPerTrigger"),
        min_offsets=words.maybe_count("minOffsetsPerTrigger") or 1,
        max_trigger_delay_ns=words.duration("maxTriggerDelay"),
        max_bytes=words.maybe_count("maxBytesPerTrigger"),
        min_partitions=words.maybe_count("minPartitions"),
        max_records_per_partition=words.maybe_count("maxRecordsPerPartition"),
        fail_on_data_loss=words.switch("failOnDataLoss"),
        include_headers=words.switch("includeHeaders"),
        read_mode=words.choice("readMode", ReadMode),
        on_commit=words.choice("onCommit", OnCommit),
        progress_subject=words.text("progressSubject"),
    )
    _check_source(made)
    return made


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """The checked options of a write. Raises UsageError; NotFound for an unknown context."""
    words = _Words(given, CONNECTION_OPTIONS + SINK_OPTIONS)
    made = SinkOptions(
        connection=_connection(words),
        subject=words.text("subject"),
        expect_stream=words.text("expectStream"),
        guarantee=words.choice("guarantee", Guarantee),
        state_bucket=words.text("stateBucket"),
        sink_name=words.text("sinkName"),
        max_in_flight=words.maybe_count("maxInFlight") or 1,
        ack_timeout_ns=words.duration("ackTimeout"),
    )
    if made.subject and not _literal_subject(made.subject):
        raise UsageError(f"option subject: {made.subject!r} is not a subject to publish to")
    for name, value in (("stateBucket", made.state_bucket), ("sinkName", made.sink_name)):
        if value and not re.fullmatch(r"[A-Za-z0-9_-]+", value):
            raise UsageError(f"option {name}: {value!r} has other than letters, digits, - and _")
    return made


def connection_options(settings: Settings) -> dict[str, str]:
    """The options that reach the servers of these settings, for `.options(**...)`."""
    found = {
        option: str(value)
        for option, key in _FLAGS.items()
        if (value := getattr(settings.connection, key))
    }
    if settings.connection.tls_first:
        found["tlsfirst"] = "true"
    found["timeout"] = format_duration(settings.timeout_ns)
    return found


def secrets(given: Mapping[str, str]) -> tuple[str, ...]:
    """The values among options that nobody may see, for tests and for cleaning texts."""
    hidden = {option.name.lower() for option in CONNECTION_OPTIONS if option.secret}
    return tuple(value for name, value in given.items() if name.lower() in hidden and value)


def _connection(words: "_Words") -> ConnectionOptions:
    if not words.text("servers") and not words.text("context"):
        raise UsageError(
            "neither option servers nor option context says which servers to use",
            hints=('.option("servers", "nats://host:4222")',),
        )
    flags = {key: words.text(name) for name, key in _FLAGS.items() if words.given(name)}
    flags["timeout"] = format_duration(words.duration("timeout"))
    if words.given("context"):
        flags["context"] = words.text("context")
    settings = load(flags, _environment(), use_context=words.given("context"))
    return ConnectionOptions(settings, words.duration("outageTimeout"))


def _environment() -> dict[str, str]:
    """Only what says where contexts are kept; other variables are those of another process."""
    import os

    names = ("XDG_CONFIG_HOME", "HOME", "USERPROFILE")
    return {name: value for name in names if (value := os.environ.get(name))}


def _check_source(made: SourceOptions) -> None:
    if bool(made.streams) == bool(made.stream_pattern):
        raise UsageError("give either option stream or option streamPattern")
    for name in made.streams:
        if not re.fullmatch(r"[^\s.*>/\\]+", name):
            raise UsageError(f"option stream: {name!r} is not a stream name")
    if made.progress_subject and not _literal_subject(made.progress_subject):
        raise UsageError(f"option progressSubject: {made.progress_subject!r} is not a subject")
    try:
        re.compile(made.stream_pattern)
    except re.error as error:
        raise UsageError(f"option streamPattern: {made.stream_pattern!r}: {error}") from None
    for subject in made.filter_subjects:
        if not _subject_filter(subject):
            raise UsageError(f"option filterSubjects: {subject!r} is not a subject filter")
    if made.end.everywhere == EARLIEST or EARLIEST in made.end.each.values():
        raise UsageError("option endingOffsets: a read cannot end at the earliest message")
    named = set(made.start.each) | set(made.end.each)
    if made.streams and named - set(made.streams):
        raise UsageError(
            f"options startingOffsets and endingOffsets name {', '.join(sorted(named))},"
            f" option stream {', '.join(made.streams)}"
        )


def _position(words: "_Words", offsets: str, timestamp: str, default: int) -> Position:
    if words.given(offsets) and words.given(timestamp):
        raise UsageError(f"give either option {offsets} or option {timestamp}")
    text = words.text(offsets).strip()
    if words.given(timestamp):
        return Position(default, time_ns=_time(timestamp, words.text(timestamp)))
    places = {"earliest": EARLIEST, "latest": LATEST}
    if text.lower() in places:
        return Position(places[text.lower()])
    try:
        each = json.loads(text)
    except ValueError:
        each = None
    if not isinstance(each, dict) or not all(
        type(value) is int and value >= EARLIEST for value in each.values()
    ):
        raise UsageError(
            f'option {offsets}: {text!r} is not earliest, latest or {{"STREAM": sequence}}'
        )
    return Position(default, each)


def _time(name: str, text: str) -> int:
    if text.isdigit():
        return int(text) * 1_000_000
    try:
        return parse_time(text)
    except ValueError:
        raise UsageError(
            f"option {name}: {text!r} is neither RFC 3339 nor milliseconds since 1970"
        ) from None


def _literal_subject(text: str) -> bool:
    return bool(re.fullmatch(r"[^\s.*>]+(\.[^\s.*>]+)*", text))


def _subject_filter(text: str) -> bool:
    return bool(re.fullmatch(r"(([^\s.*>]+|\*)\.)*([^\s.*>]+|\*|>)", text))


class _Words:
    """Options as they were given, by lower-case name; refuses those that nobody knows."""

    def __init__(self, given: Mapping[str, str], table: tuple[Option, ...]) -> None:
        self._table = {option.name.lower(): option for option in table}
        self._given = {name.lower(): str(value) for name, value in given.items()}
        for name in self._given:
            if name not in self._table and name not in SPARK_OPTIONS:
                near = difflib.get_close_matches(name, self._table, 1)
                hint = f"did you mean {self._table[near[0]].name}?" if near else ""
                raise UsageError(f"unknown option {name}", hints=(hint,) if hint else ())

    def given(self, name: str) -> bool:
        """Whether the option was written, and not empty."""
        return bool(self._given.get(name.lower()))

    def text(self, name: str) -> str:
        """Its value or default."""
        return self._given.get(name.lower()) or self._table[name.lower()].default

    def names(self, name: str) -> tuple[str, ...]:
        """Values separated by commas, each once, in order."""
        return tuple(dict.fromkeys(w.strip() for w in self.text(name).split(",") if w.strip()))

    def maybe_count(self, name: str) -> int | None:
        """A positive number, None if there is none."""
        text = self.text(name)
        if not text:
            return None
        if not text.isdigit() or int(text) < 1:
            raise UsageError(f"option {name}: {text!r} is not a positive number")
        return int(text)

    def duration(self, name: str) -> int:
        """Nanoseconds; positive."""
        try:
            found = parse_duration(self.text(name))
        except ValueError as error:
            raise UsageError(f"option {name}: {error}") from None
        if found <= 0:
            raise UsageError(f"option {name}: {self.text(name)!r} is not a positive duration")
        return found

    def switch(self, name: str) -> bool:
        """true or false."""
        text = self.text(name).lower()
        if text not in ("true", "false"):
            raise UsageError(f"option {name}: {text!r} is neither true nor false")
        return text == "true"

    def choice(self, name: str, kind: type[E]) -> E:
        """One of the values of an enumeration."""
        text = self.text(name).lower()
        for member in kind:
            if member.value == text:
                return member
        known = ", ".join(str(member.value) for member in kind)
        raise UsageError(f"option {name}: {text!r} is not one of {known}")
