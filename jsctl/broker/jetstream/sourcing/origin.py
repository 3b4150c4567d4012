"""A mirror's or source's declaration, prepared: what it is called, asked for and stored as."""

from collections.abc import Sequence

from jsctl.api.stream import StreamConfig, StreamSource
from jsctl.broker.jetstream.sourcing import names
from jsctl.broker.subject.transforms import Transform, compile_transform
from jsctl.dataclass import dataclass

API_PREFIX = "$JS.API"


@dataclass(frozen=True, slots=True)
class UpstreamOrigin:
    """See the module. `key` is the index name of a source, and empty for a mirror."""

    declared: StreamSource
    key: str
    consumer: str
    """Name of the consumer that it is read by."""
    transforms: tuple[Transform, ...]

    @property
    def is_mirror(self) -> bool:
        """Whether sequences and times are the origin's."""
        return not self.key

    @property
    def filters(self) -> tuple[str, ...]:
        """What is asked for of the origin; empty: everything."""
        declared = self.declared
        if declared.subject_transforms:
            return tuple([one.src for one in declared.subject_transforms])
        return (declared.filter_subject,) if declared.filter_subject else ()

    def stored_as(self, subject: bytes) -> bytes:
        """The subject that a message is stored under."""
        for transform in self.transforms:
            mapped = transform.apply(subject)
            if mapped is not None:
                return mapped
        return subject

    def api_subject(self, subject: str) -> bytes:
        """Where the origin's API is asked, for a subject below its plain prefix."""
        external = self.declared.external
        if external is not None:
            subject = subject.replace(API_PREFIX, external.api, 1).replace("..", ".")
        return subject.encode()

    def deliver_subject(self, suffix: str) -> bytes:
        """A subject for its messages, which nobody else has."""
        declared = self.declared
        if declared.consumer is not None:
            return declared.consumer.deliver_subject.encode()
        letter = "M" if self.is_mirror else "S"
        external = declared.external
        if external is not None and external.deliver:
            return f"{external.deliver}.{letter}.{suffix}".replace("..", ".").encode()
        return f"$JS.{letter}.{suffix}".encode()


def mirror_of(account: str, config: StreamConfig, domain: str) -> UpstreamOrigin | None:
    """The origin of a mirror; None if a stream is none."""
    if config.mirror is None:
        return None
    return _prepared(config.mirror, "", names.mirror_consumer(config.name, account, domain))


def sources_of(account: str, config: StreamConfig, domain: str) -> Sequence[UpstreamOrigin]:
    """The origins that a stream has as sources, in the order of its config."""
    return [
        _prepared(
            one,
            names.index_name(one),
            names.source_consumer(config.name, account, domain, one, config.sources),
        )
        for one in config.sources
    ]


def _prepared(declared: StreamSource, key: str, consumer: str) -> UpstreamOrigin:
    transforms = [
        compile_transform(one.src.encode(), one.dest.encode())
        for one in declared.subject_transforms
        if one.dest
    ]
    if declared.consumer is not None:
        consumer = declared.consumer.name
    return UpstreamOrigin(declared, key, consumer, tuple(transforms))
