"""A server that stands alone lost its log: streams and consumers that only the log named are taken
up again from what their directories say (decision 40)."""

from collections.abc import Iterator

from jsctl.broker.assets.assigned_files import Assignment, read_all
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.meta.entries import assign_consumer, assign_stream
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.subject.patterns import PatternSet, Tangled
from jsctl.broker.turn import LogLevel


def left_over(context: ReplicaContext, meta: Meta) -> Iterator[bytes]:
    """Entries for what is on the disk, and not in the meta state. Each has to be noted before the
    next is asked for: no two streams take the same messages. Raises DiskError."""
    known = {made.group.name for made in meta.assets()}
    for directory, made in read_all(context.disk):
        if directory.partition("/")[2] in known:
            continue
        reason = "it does not say what it is" if made is None else _refusal(context, meta, made)
        if made is None or reason:
            text = f"'{directory}' belongs to nothing that there is, and stays as it is: {reason}"
            context.log(LogLevel.WARNING, text)
            continue
        context.log(LogLevel.WARNING, f"Taken up again from '{directory}': {_name(made)}")
        yield assign_stream(made) if isinstance(made, StreamAssignment) else assign_consumer(made)


def _name(made: Assignment) -> str:
    if isinstance(made, StreamAssignment):
        return f"stream '{made.account} > {made.name}', see `jsctl stream cluster rescue`"
    return f"consumer '{made.account} > {made.stream} > {made.name}'"


def _refusal(context: ReplicaContext, meta: Meta, made: Assignment) -> str:
    """Why an asset cannot be taken up; empty if it can."""
    if context.me not in made.group.members:
        return "it was made for other servers"
    if not isinstance(made, StreamAssignment):
        if meta.stream(made.account, made.stream) is None:
            return f"there is no stream '{made.stream}'"
        taken = meta.consumer(made.account, made.stream, made.name) is not None
        return f"there is a consumer '{made.name}'" if taken else ""
    if meta.stream(made.account, made.name) is not None:
        return f"there is a stream '{made.name}'"
    try:
        subjects = PatternSet(subject.encode() for subject in made.config.subjects)
        taken = meta.is_taken(made.account, subjects, made.name)
    except Tangled:
        taken = True
    return f"another stream takes messages of '{made.name}'" if taken else ""
