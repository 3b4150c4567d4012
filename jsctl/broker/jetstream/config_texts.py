"""The JSON of configs, made and read once.

The config of a stream or consumer that is made is in the entry of the meta group, in the first
entry of its own log, and is read from there again. Each of these is asked of the few that were last
known here, and text and object are what the codec would make of each other.
"""

from functools import lru_cache
from typing import Generic, TypeVar

from jsctl.api.codec import dumps, loads
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig
from jsctl.dataclass import replace

T = TypeVar("T", StreamConfig, ConsumerConfig)
KEPT_MAX = 256
"""Requests that are in flight at a time, by a wide margin; the oldest is forgotten."""
TEXT_BYTES_MAX = 4096
"""Longer texts are made and read each time."""
METADATA_KEPT = 64
"""Most configs have none but what the server puts there, and that is alike."""


class ConfigTexts(Generic[T]):
    """Of one kind of config."""

    def __init__(self, cls: type[T]) -> None:
        self._cls: type[T] = cls
        self._texts: dict[int, tuple[T, bytes]] = {}
        """By the identity of configs, which are held here so that it stays theirs."""
        self._configs: dict[bytes, T] = {}

    def text(self, config: T) -> bytes:
        """The config as JSON."""
        known = self._texts.get(id(config))
        if known is not None:
            return known[1]
        text = dumps(config)
        if len(text) <= TEXT_BYTES_MAX:
            _put(self._texts, id(config), (config, text))
            _put(self._configs, text, config)
        return text

    def config(self, text: bytes) -> T:
        """The config that a text says. Raises DecodeError."""
        known = self._configs.get(text)
        return loads(self._cls, text) if known is None else known

    def text_with(self, config: T, metadata: dict[str, str]) -> bytes:
        """The config as JSON with other metadata, put in the place of its own."""
        own, text = config.metadata, self.text(config)
        if own == metadata:
            return text
        if not own or not metadata or config.extra or len(text) > TEXT_BYTES_MAX:
            return dumps(replace(config, metadata=metadata))
        # No other member is of that name, and in strings quotes are escaped.
        known, wanted = _member(tuple(own.items())), _member(tuple(metadata.items()))
        return text.replace(known, wanted, 1)


@lru_cache(METADATA_KEPT)
def _member(metadata: tuple[tuple[str, str], ...]) -> bytes:
    return b',"metadata":' + dumps(dict(sorted(metadata)))


K = TypeVar("K")
V = TypeVar("V")


def _put(known: dict[K, V], key: K, value: V) -> None:
    if len(known) >= KEPT_MAX:
        del known[next(iter(known))]
    known[key] = value


STREAMS = ConfigTexts(StreamConfig)
CONSUMERS = ConfigTexts(ConsumerConfig)
