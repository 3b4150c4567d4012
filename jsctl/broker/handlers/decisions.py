"""What an API handler answers with. Handlers compute; the node carries decisions out."""

from collections.abc import Callable
from dataclasses import field
from enum import Enum

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.requests import StreamSnapshotRequest
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.meta.entries import Assignment
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import dataclass


class Decider(Enum):
    """Who has to answer a request."""

    META_LEADER = "meta leader"
    STREAM_LEADER = "stream leader"
    """Of the stream named in the subject; the meta leader where there is no such stream."""
    CONSUMER_LEADER = "consumer leader"
    """Likewise, of the consumer."""
    EVERY_SERVER = "every server"


@dataclass(slots=True)
class Reply:
    """Answer the request with a JSON body (already encoded) or raw headers and payload."""

    payload: bytes
    headers: bytes = b""


@dataclass(slots=True)
class Replies:
    """Answer with several messages, in order (direct get of a batch)."""

    messages: list[Reply]


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
    removed: list[Assignment] = field(default_factory=list)
    """The reply waits until those who lead these have let go of them, too."""


@dataclass(slots=True)
class ProposeGroup:
    """Put entries into a stream's or consumer's log.

    `reply` answers after the last one is applied; as a function it is given what the state
    machine returned for that entry (e.g. how many messages a purge removed).
    """

    group: str
    entries: list[bytes]
    reply: bytes | Callable[[int], bytes] | None = None


@dataclass(slots=True)
class StepDown:
    """Move a group's leadership (`_meta_` for the meta group) to one of `candidates`, best
    first (peer ids); empty means whoever is most up to date. `reply` is sent when it is on
    its way."""

    group: str
    candidates: list[str]
    reply: bytes


@dataclass(slots=True)
class RemoveMetaPeer:
    """Take a server out of the meta group's members and propose `entries`, then reply."""

    peer: str
    entries: list[bytes]
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


@dataclass(slots=True)
class AwaitRepair:
    """Decide once more when a stream's messages are repaired. `refusal` is the answer if they
    are not, or not in time."""

    group: str
    damage: Damaged
    refusal: bytes


@dataclass(slots=True)
class Rescue:
    """Lower the quorum of a group on this server, and of others that go with it, and answer."""

    kind: str
    group: str
    others: tuple[str, ...]
    quorum: int


@dataclass(slots=True)
class MakeDirect:
    """Make a consumer that only the stream's leader, this server, has; answer with it."""

    account: str
    config: ConsumerConfig
    stream: str
    headers: bytes


@dataclass(slots=True)
class SendSnapshot:
    """Send a stream that this server leads, as an archive, and answer when that begins."""

    group: str
    asked: StreamSnapshotRequest


@dataclass(slots=True)
class BeginRestore:
    """Have a server of the group receive an archive; the stream is assigned when it has it all."""

    assignment: StreamAssignment


@dataclass(slots=True)
class CheckStream:
    """Tell how far the check of a stream is; with `start` begin one."""

    group: str
    start: bool


@dataclass(slots=True)
class AuditStream:
    """Tell how far the audit of a stream is, or the verification of its chain; with `start` begin
    one."""

    group: str
    start: bool
    chained: bool = False


@dataclass(slots=True)
class SignHead:
    """Tell the hash of a chain behind a sequence, signed if this server can."""

    account: str
    stream: str
    since: int
    seq: int
    link: bytes


Decision = (
    Reply
    | Replies
    | Silent
    | ProposeMeta
    | ProposeGroup
    | StepDown
    | RemoveMetaPeer
    | Gather
    | AwaitRepair
    | Rescue
    | CheckStream
    | AuditStream
    | SignHead
    | MakeDirect
    | SendSnapshot
    | BeginRestore
)
