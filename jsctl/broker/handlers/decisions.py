"""What an API handler answers with. Handlers compute; the node carries decisions out."""

from dataclasses import dataclass, field
from enum import Enum

from jsctl.broker.jetstream.requests import ApiRequest


class Target(Enum):
    """Who has to answer a request."""

    META_LEADER = "meta leader"
    STREAM_LEADER = "stream leader"
    CONSUMER_LEADER = "consumer leader"
    EVERY_SERVER = "every server"


@dataclass(slots=True)
class Reply:
    """Answer the request with a JSON body (already encoded) or raw headers and payload."""

    payload: bytes
    headers: bytes = b""


@dataclass(slots=True)
class Silent:
    """Answer nothing: somebody else does, or the real server does not answer either."""


@dataclass(slots=True)
class ProposeMeta:
    """Put entries into the meta group's log, then reply once they are applied here.

    `reply` None means that somebody else answers (a create is answered by the new stream's
    leader, named in the assignment's request).
    """

    entries: list[bytes]
    reply: bytes | None


@dataclass(slots=True)
class ProposeGroup:
    """Put an entry into a stream's or consumer's log.

    `reply` answers after it is applied. When None, the state machine's own result for the
    entry (e.g. how many messages a purge removed) is given to `ApplyReply` of its kind.
    """

    group: str
    entries: list[bytes]
    reply: bytes | None = None


@dataclass(slots=True)
class StepDown:
    """Move a group's leadership (`_meta_` for the meta group) to one of `candidates`, best
    first; empty means whoever is most up to date. `reply` is sent when it is on its way."""

    group: str
    candidates: list[str]
    reply: bytes


@dataclass(slots=True)
class Gather:
    """Ask the leaders of many assets for their info, then reply with all of them.

    Used by STREAM.LIST and CONSUMER.LIST: `streams`/`consumers` name the page, the node
    collects infos within its deadline and calls `handlers.lists.finish`.
    """

    request: ApiRequest
    assets: list[tuple[str, str]] = field(default_factory=list)
    """(stream, consumer), consumer empty for streams."""
    total: int = 0
    offset: int = 0


Decision = Reply | Silent | ProposeMeta | ProposeGroup | StepDown | Gather
