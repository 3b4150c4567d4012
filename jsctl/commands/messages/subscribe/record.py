"""`--backup`: what is received goes into a backup, too."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from jsctl.api.stream import StreamConfig
from jsctl.api.subjects import AckSubject
from jsctl.commands.messages.subscribe.show import Shown
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.finishing import asked_by_interrupt
from jsctl.errors import JsctlError, UsageError
from jsctl.render.humanize import number, size

_NO_NAME = frozenset(" \t\r\n\f.*>/\\")
_UNLIMITED = ("max_consumers", "max_msgs", "max_msgs_per_subject", "max_bytes", "max_msg_size")


@asynccontextmanager
async def recording(
    call: Call, shown: Shown, subjects: Sequence[str], config: StreamConfig | None = None
) -> AsyncIterator[None]:
    """Within it what is shown is recorded; without `config` it is of no stream.

    The backup appears when all went well, or was interrupted. Raises JsctlError.
    """
    if not call.text("backup"):
        yield
        return
    from jsctl.api.codec import encode
    from jsctl.backups.directory import staged
    from jsctl.backups.record import Origin, Recorder
    from jsctl.client.headers import block_of

    target = Path(call.text("backup")).expanduser()
    described = encode(config) if config is not None else _plain(target, subjects)
    name = config.name if config is not None else ""
    origin = Origin(tuple(subjects), name, time.time_ns())
    try:
        with ExitStack() as closing:
            stage = closing.enter_context(staged(target))
            with stage.archive() as out:
                recorder = Recorder(out, described, origin)

                def record(
                    subject: str,
                    stored: AckSubject | None,
                    headers: Mapping[str, str] | None,
                    data: bytes,
                ) -> None:
                    sequence, time_ns = (0, time.time_ns())
                    if stored is not None:
                        sequence, time_ns = stored.stream_seq, stored.time_ns
                    recorder.add(subject, sequence, time_ns, block_of(headers), data)

                shown.record = record
                with asked_by_interrupt():  # What came so far is kept.
                    yield
                description = recorder.finish(time.time_ns(), 0)
            stage.describe(description)
            stage.commit()
    except OSError as error:
        raise JsctlError(f"backup to {target} failed: {error.strerror}") from None
    call.output.log(
        f"Backup of {number(recorder.messages)} messages ({size(recorder.bytes)}) "
        f"written to {Path(target).absolute()}, 0 dropped"
    )


def _plain(target: Path, subjects: Sequence[str]) -> dict[str, object]:
    """The stream that a recording without one becomes; it is named as its directory."""
    name = target.absolute().name
    if not name or set(name) & _NO_NAME:
        raise UsageError(f'backup directory name "{name}" is not a valid stream name')
    return {
        "name": name,
        "subjects": list(subjects),
        "retention": "limits",
        **dict.fromkeys(_UNLIMITED, -1),
        "max_age": 0,
        "storage": "file",
        "discard": "old",
        "num_replicas": 1,
    }
