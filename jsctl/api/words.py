"""The enumerations of the JetStream API; values are the words on the wire."""

from enum import Enum
from typing import ClassVar


class Retention(Enum):
    """When a stream lets go of messages."""

    LIMITS = "limits"
    INTEREST = "interest"
    WORK_QUEUE = "workqueue"


class Discard(Enum):
    """What gives way when a stream is full."""

    __any_case__ = True

    OLD = "old"
    NEW = "new"


class Storage(Enum):
    """Where messages are kept."""

    FILE = "file"
    MEMORY = "memory"


class Compression(Enum):
    """How stored blocks are compressed."""

    __refusal__ = "unknown compression algorithm"
    __texts_only__ = True

    NONE = "none"
    S2 = "s2"


class PersistMode(Enum):
    """Whether an acknowledgement waits for the disk."""

    __aliases__: ClassVar = {"": "default"}

    DEFAULT = "default"
    ASYNC = "async"


class DeliverPolicy(Enum):
    """Where a consumer starts."""

    __aliases__: ClassVar = {"undefined": "all"}

    ALL = "all"
    LAST = "last"
    NEW = "new"
    BY_START_SEQUENCE = "by_start_sequence"
    BY_START_TIME = "by_start_time"
    LAST_PER_SUBJECT = "last_per_subject"


class AckPolicy(Enum):
    """What clients acknowledge."""

    NONE = "none"
    ALL = "all"
    EXPLICIT = "explicit"
    FLOW_CONTROL = "flow_control"


class ReplayPolicy(Enum):
    """How fast old messages come."""

    INSTANT = "instant"
    ORIGINAL = "original"


class PriorityPolicy(Enum):
    """Which of several waiting clients gets the next message."""

    __refusal__ = "unknown priority policy: {value}"

    NONE = "none"
    OVERFLOW = "overflow"
    PINNED_CLIENT = "pinned_client"
    PRIORITIZED = "prioritized"


class ConsumerAction(Enum):
    """What a create request may do."""

    __refusal__ = "unknown consumer action: {value}"

    CREATE_OR_UPDATE = ""
    CREATE = "create"
    UPDATE = "update"


SERVER_KEYS = frozenset(
    (
        *(f"_nats.{word}" for word in ("ver", "level", "req.level")),
        *(f"_nats.{of}.{word}" for of in ("mirror", "src") for word in ("stream", "acc", "domain")),
    )
)
"""Metadata that servers attach by themselves; all other keys are people's, whatever their name."""
