"""All targets by name."""

from collections.abc import Callable

from tests.fuzz import (
    archives,
    configuration,
    documents,
    formats,
    lanes,
    live,
    monitoring_port,
    nodes,
    parsers,
    stores,
)
from tests.fuzz.target import Target

_KINDS = (
    *parsers.TARGETS,
    *lanes.TARGETS,
    *nodes.TARGETS,
    *stores.TARGETS,
    archives.Archives,
    configuration.Configuration,
    documents.Documents,
    monitoring_port.Http,
    live.Live,
)
TARGETS: dict[str, Callable[[], Target]] = {kind.name: kind for kind in _KINDS} | formats.MADE
