"""What an archive says besides its messages: the stream's configuration and state, its consumers.

Consumers with a replica here stand as that replica has applied their log: what was acknowledged a
moment ago may be delivered again, what was not is not lost.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jsctl.api.codec import encode
from jsctl.api.stream import StreamConfig, StreamState
from jsctl.backups import archive, entries
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jsapi.archives.archived_chain import STATE_KEY
from jsctl.broker.jsapi.archives.consumer_documents import document_of, document_of_info
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.dataclass import replace

if TYPE_CHECKING:
    from jsctl.broker.jsapi.archives.snapshot import Snapshot


def config_of(replica: StreamReplica) -> StreamConfig:
    """As the archive's owner keeps it."""
    return replica.assignment.config


def state_of(view: ApiView, replica: StreamReplica) -> StreamState:
    """What the stream holds now."""
    count = view.meta.consumer_count(*replica.key)
    return replica.stream.info_state(consumers=count)


def front(view: ApiView, made: "Snapshot", state: StreamState) -> Iterator[bytes]:
    """The entries before the messages."""
    now_ns, last_seq = view.now_ns, made.bounds[1]
    consumers = [] if made.asked.no_consumers else list(_consumers(view, made, last_seq))
    # A stream that never had a message has its first sequence all the same.
    state = replace(state, first_seq=made.bounds[0], consumer_count=len(consumers))
    told = encode(state)
    if made.chain is not None:
        told[STATE_KEY] = made.chain
    yield archive.begin_bytes(now_ns, told)
    for name, document in consumers:
        yield entries.entry_bytes(archive.CONSUMERS + name, now_ns, 0, b"", document)


def elsewhere(view: ApiView, replica: StreamReplica) -> list[tuple[str, str]]:
    """(stream, consumer) of those that have no replica here: their leaders have to be asked."""
    account, stream = replica.key
    names = view.meta.consumers(account, stream)
    return [(stream, name) for name in names if name not in replica.watchers]


def _consumers(view: ApiView, made: "Snapshot", last_seq: int) -> Iterator[tuple[str, bytes]]:
    account, stream = made.replica.key
    for name, assignment in view.meta.consumers(account, stream).items():
        config, info = assignment.config, made.infos.get(name)
        found = view.consumer(account, stream, name)
        if found is not None:
            yield name, document_of(config, found.state, last_seq)
        elif info is not None:
            yield name, document_of_info(config, info, last_seq)
