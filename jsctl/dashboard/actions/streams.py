"""Purging, deleting, sealing and scaling streams; deleting consumers."""

from dataclasses import replace

from jsctl.api import jsontext
from jsctl.client.manager import as_request
from jsctl.dashboard.actions.plans import Effect, Plan, Target, Tier, words
from jsctl.dashboard.connection.link import Link
from jsctl.dashboard.model.snapshot import Consumer, Kind, Level, PeerState, Snapshot, Stream
from jsctl.errors import JsctlError
from jsctl.render.humanize import counted, number, size

KEEPS = ("all", "keep 1", "keep 1000", "keep 10000")
REPLICAS = ("1", "2", "3", "5")


def _stream(target: Target) -> Stream:
    assert isinstance(target, Stream)
    return target


def _kept(choice: str) -> int:
    word = choice.removeprefix("keep ").strip()
    return int(word) if word.isdigit() else 0


def _unread(stream: Stream, snapshot: Snapshot, kept: int) -> Effect:
    """What consumers would never get."""
    losing = []
    for consumer in snapshot.consumers_of(stream):
        unread = consumer.lag + consumer.ack_pending
        if unread > kept:
            losing.append((unread - kept, consumer.name))
    if not losing:
        return Effect("unread", "0", "no consumer loses anything")
    losing.sort(reverse=True)
    names = ", ".join(name for _, name in losing[:3])
    most = losing[0][0]
    return Effect("unread", number(most), f"lost to {names}", Level.BAD)


def _bucket_warning(stream: Stream) -> str:
    words_ = {
        Kind.BUCKET: "This is a key-value bucket: its keys and their history go.",
        Kind.OBJECTS: "This is an object store: its objects go.",
    }
    return words_.get(stream.kind, "")


def plan_purge(target: Target, snapshot: Snapshot) -> Plan:
    """Remove messages."""
    stream = _stream(target)

    def effects(choice: str) -> tuple[Effect, ...]:
        kept = min(_kept(choice), stream.messages)
        gone = stream.messages - kept
        share = stream.bytes * gone // stream.messages if stream.messages else 0
        return (
            Effect("messages", f"{number(gone)} go", f"{number(kept)} stay", Level.WARN),
            Effect("bytes", f"about {size(share)}", "on every replica"),
            _unread(stream, snapshot, kept),
        )

    async def run(link: Link, choice: str) -> str:
        purged = await link.manager.purge(stream.name, keep=_kept(choice))
        return f"purged {counted(purged, 'message')}"

    return Plan(
        title="Purge stream",
        tier=Tier.TYPED,
        headline=f"Remove messages of {stream.name}",
        button="Purge",
        run=run,
        command=lambda choice: purge_command(stream, _kept(choice)),
        effects=effects,
        typed=lambda _choice: stream.name,
        choices=KEEPS,
        warning=_bucket_warning(stream) or "Purged messages cannot be brought back.",
        mark="bad",
    )


def purge_command(target: Target, kept: int = 0) -> str:
    """The command line of it."""
    more = ("--keep", str(kept)) if kept else ()
    return words("stream", "purge", _stream(target).name, *more, "-f")


def plan_delete(target: Target, snapshot: Snapshot) -> Plan:
    """Remove a stream or a consumer."""
    if isinstance(target, Consumer):
        return _plan_delete_consumer(target)
    stream = _stream(target)
    readers = [
        one.name
        for one in snapshot.streams
        if any(source.name == stream.name for source in one.sources)
    ]

    async def run(link: Link, _choice: str) -> str:
        await link.manager.delete_stream(stream.name)
        return f"deleted, with {counted(stream.messages, 'message')}"

    effects = (
        Effect("messages", f"{number(stream.messages)} go", size(stream.bytes), Level.BAD),
        Effect("consumers", f"{stream.consumers} go"),
        Effect(
            "mirrors",
            ", ".join(readers) or "none",
            "get nothing new any more" if readers else "",
            Level.WARN if readers else Level.OK,
        ),
    )
    return Plan(
        title="Delete stream",
        tier=Tier.TYPED,
        headline=f"Delete {stream.name} and everything in it",
        button="Delete",
        run=run,
        command=lambda _choice: delete_command(stream),
        effects=lambda _choice: effects,
        typed=lambda _choice: stream.name,
        warning=_bucket_warning(stream) or "A deleted stream cannot be brought back.",
        safer="seal it instead (Z): it stays readable and takes nothing new",
        mark="bad",
    )


def _plan_delete_consumer(consumer: Consumer) -> Plan:
    async def run(link: Link, _choice: str) -> str:
        await link.manager.delete_consumer(consumer.stream, consumer.name)
        return "deleted"

    effects = (
        Effect("position", f"at {number(consumer.floor_seq)}", "is forgotten", Level.WARN),
        Effect("in flight", f"{number(consumer.ack_pending)} not acknowledged"),
        Effect("waiting", f"{number(consumer.waiting)} pull requests", "end"),
    )
    return Plan(
        title="Delete consumer",
        tier=Tier.TYPED,
        headline=f"Delete {consumer.name} of {consumer.stream}",
        button="Delete",
        run=run,
        command=lambda _choice: delete_command(consumer),
        effects=lambda _choice: effects,
        typed=lambda _choice: consumer.name,
        warning="A consumer made anew starts over: messages may be delivered again.",
        safer="pause it instead (P): it keeps its position",
        mark="bad",
    )


def delete_command(target: Target) -> str:
    """The command line of it."""
    if isinstance(target, Consumer):
        return words("consumer", "rm", target.stream, target.name, "-f")
    return words("stream", "rm", _stream(target).name, "-f")


def plan_seal(target: Target, _snapshot: Snapshot) -> Plan:
    """No more changes, for ever."""
    stream = _stream(target)

    async def run(link: Link, _choice: str) -> str:
        info = await link.manager.stream_info(stream.name)
        await link.manager.update_stream(as_request(replace(info.config, sealed=True)))
        return "sealed"

    effects = (
        Effect("publishing", "refused", f"now {stream.rate:.0f} a second", Level.WARN),
        Effect("deleting", "refused", "purges and limits too"),
        Effect("reading", "goes on"),
    )
    return Plan(
        title="Seal stream",
        tier=Tier.SUMMARY,
        headline=f"Let nothing change {stream.name} any more",
        button="Seal",
        run=run,
        command=lambda _choice: seal_command(stream),
        effects=lambda _choice: effects,
        warning="A sealed stream cannot be opened again.",
    )


def seal_command(target: Target) -> str:
    """The command line of it."""
    return words("stream", "seal", _stream(target).name, "-f")


def plan_scale(target: Target, snapshot: Snapshot) -> Plan:
    """More or fewer replicas."""
    stream = _stream(target)
    up = sum(one.up for one in snapshot.servers)
    choices = tuple(one for one in REPLICAS if not up or int(one) <= up)
    now = str(stream.replicas)

    def effects(choice: str) -> tuple[Effect, ...]:
        wanted = int(choice)
        more = wanted - stream.replicas
        copied = Effect("to copy", size(max(0, more) * stream.bytes), "in the background")
        spare = (wanted - 1) // 2
        level = Level.WARN if spare == 0 else Level.OK
        return (
            Effect("replicas", f"{stream.replicas} → {wanted}"),
            Effect("may fail", counted(spare, "server"), "before writes stop", level),
            copied,
        )

    async def run(link: Link, choice: str) -> str:
        info = await link.manager.stream_info(stream.name)
        config = replace(info.config, num_replicas=int(choice))
        await link.manager.update_stream(as_request(config))
        return f"has {counted(int(choice), 'replica')} now; they catch up by themselves"

    away = [peer.name for peer in stream.peers if peer.state is PeerState.OFFLINE]
    return Plan(
        title="Scale replicas",
        tier=Tier.SUMMARY,
        headline=f"Keep {stream.name} on more or fewer servers",
        button="Scale",
        run=run,
        command=lambda choice: scale_command(stream, choice),
        effects=effects,
        choices=choices or (now,),
        choice=choices.index(now) if now in choices else 0,
        warning=f"{', '.join(away)} offline: heal the group first." if away else "",
    )


def scale_command(target: Target, choice: str = "3") -> str:
    """The command line of it."""
    return words("stream", "edit", _stream(target).name, "--replicas", choice, "-f")


async def publish(link: Link, subject: str, body: str) -> str:
    """Stores a message and says where; raises JsctlError if nothing took it."""
    answer = await link.manager.requests.exchange(subject, body.encode())
    try:
        ack = jsontext.parse_object(answer)
    except ValueError:
        ack = {}
    if isinstance(problem := ack.get("error"), dict):
        raise JsctlError(str(problem.get("description", "refused")))
    stream, seq = ack.get("stream"), ack.get("seq")
    if not isinstance(stream, str) or not isinstance(seq, int):
        raise JsctlError(f"something else than a stream answered on {subject}")
    return f"stored in {stream} as {number(seq)}"
