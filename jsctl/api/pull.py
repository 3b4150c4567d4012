"""What a client asks of a pull consumer. Apart from the other requests: a server needs it first."""

from typing import ClassVar

from jsctl.api.fields import Int64, Nanos, embed, omit
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityGroup:
    """How a pull takes part in a priority group."""

    GO_NAME: ClassVar[str] = "PriorityGroup"

    group: str = omit("")
    min_pending: Int64 = omit(0)
    min_ack_pending: Int64 = omit(0)
    id: str = omit("")
    priority: int = omit(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGetNextRequest:
    """`CONSUMER.MSG.NEXT`."""

    GO_NAME: ClassVar[str] = ""
    """Mistakes in it are told without its name."""

    expires: Nanos = omit(0)
    batch: int = omit(0)
    max_bytes: int = omit(0)
    no_wait: bool = omit(False)
    idle_heartbeat: Nanos = omit(0)
    priority: PriorityGroup = embed(PriorityGroup)
