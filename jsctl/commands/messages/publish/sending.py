"""A message that is published: filled in, stored, and what is told of it."""

from jsctl.client.requests import Requester
from jsctl.client.stored import stored_answer
from jsctl.commands.toolkit.content.bodies import check_subject
from jsctl.commands.toolkit.content.templates import fill
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Unreachable
from jsctl.render.humanize import number

AHEAD_BYTES_MAX, MESSAGE_BYTES = 1024 * 1024, 64
"""So much may be on its way; about so much is a message without its body."""


def is_template(call: Call) -> bool:
    """Whether the subject has to be filled in before it can be judged."""
    return call.flag("templates") and "{{" in call.text("subject")


def filled(call: Call, body: str, number: int) -> tuple[str, bytes]:
    """Subject and body of the message of that number, from 1. Raises UsageError."""
    subject = call.text("subject")
    if call.flag("templates"):
        body = fill(body, number, what="body", log=call.output.log)
        subject = fill(subject, number, what="subject", log=call.output.log)
    if is_template(call):
        check_subject(subject)
    return subject, body.encode("utf-8", "surrogateescape")


def silent(_text: str) -> None:
    """Nobody wants to hear it."""


async def stored(
    requests: Requester, subject: str, payload: bytes, headers: dict[str, str] | None
) -> dict[str, object]:
    """JetStream's answer to a message. Raises ApiError and Unreachable."""
    return stored_answer(await answered(requests, subject, payload, headers))


async def answered(
    requests: Requester, subject: str, payload: bytes, headers: dict[str, str] | None
) -> bytes:
    """The same as it came; a message that a batch goes on behind has an empty one."""
    try:
        return await requests.exchange(subject, payload, headers)
    except Unreachable as error:
        hints = (f"no stream listens on {subject}",)
        raise Unreachable(str(error), hints=hints) from None


def stored_text(document: dict[str, object]) -> str:
    """Where a message went."""
    sequence = counted_sequence(document.get("seq"))
    text = f"Stored in Stream: {document.get('stream')} Sequence: {sequence}"
    if document.get("domain"):
        text += f' Domain: "{document["domain"]}"'
    if document.get("duplicate"):
        text += " Duplicate: true"
    if document.get("val"):
        text += f" Counter Value: {document['val']}"
    return text


def counted_sequence(seq: object) -> str:
    """A sequence of an answer, which may be anything."""
    return number(seq) if isinstance(seq, int) else str(seq)
