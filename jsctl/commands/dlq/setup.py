"""`dlq setup`: the stream on the advisories about dead letters."""

from jsctl.api.codec import encode
from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig
from jsctl.api.words import Storage
from jsctl.commands.dlq.letters import NO_STREAM, STREAM, event_subjects
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict


async def setup(call: Call) -> None:
    """Makes it; raises Conflict if there is one."""
    name = check_name(call.text("dlq") or STREAM, "stream")
    config = StreamConfig(
        name=name,
        description="Messages that consumers gave up",
        subjects=event_subjects(call),
        storage=Storage(call.text("storage")),
        num_replicas=call.integer("replicas"),
        max_age=call.duration("max-age"),
        max_msgs=call.integer("max-msgs"),
        max_bytes=-1,
        max_consumers=-1,
        max_msg_size=-1,
        max_msgs_per_subject=-1,
        allow_direct=True,
    )
    async with call.manager() as manager:
        for subject in config.subjects:
            for other in await manager.stream_names(subject):
                raise Conflict(f"stream {other} notes dead letters already")
        try:
            await manager.stream_info(name)
            raise Conflict(f"there is a stream {name}, and it does not note dead letters")
        except ApiError as error:
            if error.err_code != NO_STREAM:
                raise
        if not call.flag("dry-run"):
            await manager.create_stream(config)
    if call.as_json:
        call.output.json(encode(config))
    elif call.flag("dry-run"):
        call.output.print(f"Stream {name} would note dead letters: {', '.join(config.subjects)}")
    else:
        call.output.print(f"Stream {name} notes dead letters from now on")
