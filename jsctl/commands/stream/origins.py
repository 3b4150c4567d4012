"""What `stream add` asks on a terminal about a mirror, or about each source, named by a word."""

from dataclasses import replace
from datetime import UTC, datetime

from jsctl.api.stream import (
    ExternalStream,
    StreamConfig,
    StreamConsumerSource,
    StreamSource,
    SubjectTransform,
)
from jsctl.api.times import format_time
from jsctl.commands.toolkit.grammar.values import parse_whole
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass

TIME_FORMAT = "%Y:%m:%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class _Words:
    """How the questions about one origin are put."""

    kind: str
    consumer: str
    start: str
    sequence: str
    time: str
    filters: str
    from_domain: str
    domain: str
    domain_prefix: str
    from_account: str
    account: str
    account_prefix: str


_MIRROR = _Words(
    "mirror",
    "Configure a custom durable consumer",
    "Adjust mirror start",
    "Mirror Start Sequence",
    "Mirror Start Time (YYYY:MM:DD HH:MM:SS)",
    "Adjust mirror filter and transform",
    "Import mirror from a different JetStream domain",
    "Foreign JetStream domain name",
    "Delivery prefix",
    "Import mirror from a different account",
    "Foreign account API prefix",
    "Foreign account delivery prefix",
)


def _source_words(name: str) -> _Words:
    return _Words(
        "source",
        f'Configure a custom durable consumer for "{name}"',
        f'Adjust source "{name}" start',
        f"{name} Source Start Sequence",
        f"{name} Source UTC Time Stamp (YYYY:MM:DD HH:MM:SS)",
        f'Adjust source "{name}" filter and transform',
        f'Import "{name}" from a different JetStream domain',
        f"{name} Source foreign JetStream domain name",
        f"{name} Source foreign JetStream domain delivery prefix",
        f'Import "{name}" from a different account',
        f"{name} Source foreign account API prefix",
        f"{name} Source foreign account delivery prefix",
    )


def with_origins(call: Call, config: StreamConfig) -> StreamConfig:
    """The configuration with what is answered; documents and `--defaults` say all themselves."""
    if call.flag("defaults") or not call.prompts.possible:
        return config
    mirror = config.mirror
    if mirror is not None and mirror == StreamSource(name=mirror.name):
        mirror = _Asking(call, _MIRROR).about(mirror)
    sources = tuple(
        _Asking(call, _source_words(one.name)).about(one)
        if one == StreamSource(name=one.name)
        else one
        for one in config.sources
    )
    return replace(config, mirror=mirror, sources=sources)


class _Asking:
    """The questions about one origin, in their order."""

    def __init__(self, call: Call, words: _Words) -> None:
        self._prompts, self._words = call.prompts, words

    def about(self, origin: StreamSource) -> StreamSource:
        """The origin with what was answered."""
        if self._prompts.confirm(self._words.consumer):
            consumer = StreamConsumerSource(
                name=self._needed("Durable consumer name", "Which durable reads the messages"),
                deliver_subject=self._needed("Delivery subject", "Where that consumer delivers to"),
            )
            origin = replace(origin, consumer=consumer)
        elif self._prompts.confirm(self._words.start):
            origin = self._started(origin)
        if self._prompts.confirm(self._words.filters):
            origin = replace(origin, subject_transforms=self._transforms())
        return replace(origin, external=self._external(named=origin.consumer is not None))

    def _started(self, origin: StreamSource) -> StreamSource:
        seq = self._prompts.ask(
            self._words.sequence,
            default="0",
            check=_sequence,
            help_text="The first sequence that is taken",
        )
        when = ""
        if not seq or self._words.kind == "source":
            when = self._prompts.ask(
                self._words.time, check=_moment, help_text="The first time that is taken, in UTC"
            )
        return replace(origin, opt_start_seq=seq, opt_start_time=when)

    def _transforms(self) -> tuple[SubjectTransform, ...]:
        question = f"Filter {self._words.kind} by subject (hit enter to finish)"
        found: list[SubjectTransform] = []
        while src := self._any(question, "Only messages with such subjects are taken"):
            dest = self._any("Subject transform destination", "Empty where subjects stay")
            found.append(SubjectTransform(src=src, dest=dest))
        return tuple(found)

    def _external(self, *, named: bool) -> ExternalStream | None:
        """Of another domain or account; a consumer that is `named` delivers where it says."""
        words = self._words
        if self._prompts.confirm(words.from_domain):
            domain = self._needed(words.domain, "Whose API the stream is asked for with")
            about = "Of subjects that messages are delivered to, if they have one"
            deliver = "" if named else self._any(words.domain_prefix, about)
            return ExternalStream(api=f"$JS.{domain}.API", deliver=deliver)
        if not self._prompts.confirm(words.from_account):
            return None
        api = self._needed(words.account, "Where the API of the other account is imported")
        about = "Where the other account's deliveries are imported"
        return ExternalStream(
            api=api, deliver="" if named else self._needed(words.account_prefix, about)
        )

    def _any(self, question: str, about: str) -> str:
        return self._prompts.ask(question, check=str, help_text=about)

    def _needed(self, question: str, about: str) -> str:
        return self._prompts.ask(question, check=_some, help_text=about)


def _sequence(text: str) -> int:
    found = parse_whole(text)
    if found < 0:
        raise ValueError("a sequence is not negative")
    return found


def _some(text: str) -> str:
    if not text:
        raise ValueError("Value is required")
    return text


def _moment(text: str) -> str:
    """A time of an answer, also with dashes in its date; empty stays so. Raises ValueError."""
    if not text:
        return ""
    date, _, clock = text.partition(" ")
    read = datetime.strptime(f"{date.replace('-', ':')} {clock}", TIME_FORMAT).replace(tzinfo=UTC)
    return format_time(int(read.timestamp()) * 1_000_000_000)
