"""All features by name."""

from collections.abc import Awaitable, Callable

from tests.matrix import consumers, reading, streams
from tests.matrix.place import Place

Step = Callable[[Place], Awaitable[None]]
FEATURES: dict[str, tuple[Step, Step]] = {
    "MIRROR": (streams.mirror, streams.use_mirror),
    "SOURCES": (streams.sources, streams.use_sources),
    "EXTERNAL": (streams.external, streams.use_mirror),
    "TRANSFORM": (streams.transform, streams.use_transform),
    "REPUBLISH": (streams.republish, streams.use_republish),
    "ROLLUPS": (streams.rollups, streams.use_rollups),
    "AGEING": (streams.ageing, streams.use_ageing),
    "BATCHES": (streams.batches, streams.use_batches),
    "FAST": (streams.fast, streams.use_fast),
    "COUNTERS": (streams.counters, streams.use_counters),
    "SCHEDULES": (streams.schedules, streams.use_schedules),
    "CHAIN": (streams.chain, streams.use_chain),
    "LIMITED": (streams.limited, streams.use_limited),
    "COMPRESSED": (streams.compressed, streams.use_compressed),
    "DEAD": (consumers.dead_letters, consumers.use_dead_letters),
    "WORK": (consumers.work, consumers.use_work),
    "INTEREST": (consumers.interest, consumers.use_interest),
    "OVERFLOW": (consumers.overflow, consumers.use_overflow),
    "PINNED": (consumers.pinned, consumers.use_pinned),
    "PRIORITIZED": (consumers.prioritized, consumers.use_prioritized),
    "PAUSE": (consumers.pause, consumers.use_pause),
    "BACKOFF": (consumers.backoff, consumers.use_backoff),
    "DELAYED": (consumers.delayed, consumers.use_delayed),
    "BUCKET": (consumers.bucket, consumers.use_bucket),
    "OBJECTS": (consumers.objects, consumers.use_objects),
    "PUSHED": (reading.pushed, reading.use_pushed),
    "ORDERED": (reading.ordered, reading.use_ordered),
    "DIRECTS": (reading.directs, reading.use_directs),
    "PURGED": (reading.purged, reading.use_purged),
    "SCALED": (reading.scaled, reading.use_scaled),
    "ARCHIVE": (consumers.archive, consumers.use_archive),
}
"""How it is made, and how it is used."""
COMBINATIONS = tuple((count, storage) for count in (1, 3, 5) for storage in ("file", "memory"))
