"""Dead letters: what servers told when a consumer gave up a message, kept in a stream.

A message that was delivered too often, or that a client terminated, stays in its stream and is
never delivered to that consumer again. The server says so once, in an advisory; a stream on the
subjects of those advisories keeps them. Any stream on these subjects will do. So does one in which
a consumer has what it gives up stored: such a letter is the message itself, and its headers say
where it comes from.
"""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, TypeGuard

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.api.errors import ApiError
from jsctl.api.stream import RawStreamMsg
from jsctl.api.times import parse_time
from jsctl.backups.filters import matches
from jsctl.client.headers import block_of
from jsctl.client.reading import StoredMessage, read_stream
from jsctl.client.requests import event_prefix
from jsctl.commands.toolkit.assets.picking import check_stream
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass
from jsctl.errors import Conflict, NotFound, UsageError

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

STREAM = "DLQ"
FROM_STREAM = "Dead-Letter-Stream"
LOOK_UPS = 16
"""So many messages are asked for at once."""
NO_MESSAGE, NO_STREAM = 10037, 10059


class Why(Enum):
    """Why a message was given up; the value is the word for it, and on the command line."""

    MAX_DELIVER = "max-deliver"
    TERMINATED = "terminated"


SUBJECTS = {
    Why.MAX_DELIVER: "ADVISORY.CONSUMER.MAX_DELIVERIES.*.*",
    Why.TERMINATED: "ADVISORY.CONSUMER.MSG_TERMINATED.*.*",
}
_TYPES = {
    "io.nats.jetstream.advisory.v1.max_deliver": Why.MAX_DELIVER,
    "io.nats.jetstream.advisory.v1.terminated": Why.TERMINATED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message that a consumer gave up. `notes` are all advisories of it; the last is its id."""

    id: int
    notes: tuple[int, ...]
    why: Why
    time_ns: int
    stream: str
    consumer: str
    sequence: int
    deliveries: int
    reason: str = ""
    message: RawStreamMsg | None = None
    """None when it is gone, or nobody looked."""
    holds_message: bool = False
    """The letter is the message itself, which may be gone where it was."""


def event_subjects(call: Call) -> tuple[str, ...]:
    """Where the advisories are published."""
    prefix = event_prefix(call.settings)
    return tuple(f"{prefix}.{subject}" for subject in SUBJECTS.values())


async def dead_letter_stream(call: Call, manager: "Manager") -> str:
    """The stream that notes dead letters. Raises NotFound, and UsageError for several."""
    if call.text("dlq"):
        return (await manager.stream_info(check_stream(call.text("dlq")))).config.name
    found: dict[str, None] = {}
    for subject in event_subjects(call):
        found |= dict.fromkeys(await manager.stream_names(subject))
    if not found:
        raise NotFound(
            "no stream notes dead letters",
            hints=(
                "jsctl dlq setup makes one; what was given up before is not in it",
                "--dlq names one in which consumers have what they give up stored",
            ),
        )
    if len(found) > 1:
        raise UsageError(f"several streams note dead letters, choose one: --dlq {', '.join(found)}")
    return next(iter(found))


async def read_letters(call: Call, manager: "Manager", stream: str) -> list[Letter]:
    """The dead letters that the flags choose, by id; several advisories of one are one."""
    found: dict[tuple[str, str, int], Letter] = {}
    async for message in read_stream(manager, stream):
        letter = _letter(message)
        if letter is None:
            continue
        key = letter.stream, letter.consumer, letter.sequence
        if key in found:
            letter = _together(found.pop(key), letter)
        found[key] = letter
    oldest = time.time_ns() - call.duration("since") if call.given("since") else 0
    return [one for one in found.values() if _chosen(call, one) and one.time_ns >= oldest]


def _together(older: Letter, newer: Letter) -> Letter:
    """One letter of two about the same; that which holds the message says more."""
    said = older if older.holds_message and not newer.holds_message else newer
    return replace(said, id=newer.id, notes=(*older.notes, *newer.notes))


def _letter(message: StoredMessage) -> Letter | None:
    """The dead letter that a message is, or an advisory is about; None for anything else."""
    if message.headers.get(FROM_STREAM):
        return _stored_letter(message)
    try:
        told = jsontext.parse_object(message.data)
    except DecodeError:
        return None
    why, sequence = _TYPES.get(str(told.get("type"))), told.get("stream_seq")
    names = told.get("stream"), told.get("consumer")
    if why is None or not _is_sequence(sequence) or not all(map(_is_name, names)):
        return None
    deliveries = told.get("deliveries")
    return Letter(
        id=message.seq,
        notes=(message.seq,),
        why=why,
        time_ns=message.time_ns,
        stream=str(told.get("stream", "")),
        consumer=str(told.get("consumer", "")),
        sequence=sequence,
        deliveries=deliveries if isinstance(deliveries, int) else 0,
        reason=str(told.get("reason", "")),
    )


def _is_sequence(told: object) -> TypeGuard[int]:
    return isinstance(told, int) and not isinstance(told, bool) and is_count(str(told))


def _is_name(told: object) -> bool:
    """Whether it can be one of a stream or consumer: anybody may publish an advisory, and one that
    nothing can be asked about would be in the way of all others."""
    return isinstance(told, str) and told.isprintable() and bool(told) and not set(told) & _NO_NAME


_NO_NAME = frozenset(" .*>/\\")


def _stored_letter(message: StoredMessage) -> Letter | None:
    """As consumers with a subject for their dead letters have them stored."""
    told = message.headers
    numbers = told.get("Dead-Letter-Sequence", ""), told.get("Dead-Letter-Deliveries", "0")
    if not all(map(is_count, numbers)):
        return None
    try:
        time_ns = parse_time(told.get("Dead-Letter-Time", ""))
    except ValueError:
        time_ns = message.time_ns
    sequence, deliveries = map(int, numbers)
    ended = told.get("Dead-Letter-Reason") == "terminated"
    return Letter(
        id=message.seq,
        notes=(message.seq,),
        why=Why.TERMINATED if ended else Why.MAX_DELIVER,
        time_ns=time_ns,
        stream=told[FROM_STREAM],
        consumer=told.get("Dead-Letter-Consumer", ""),
        sequence=sequence,
        deliveries=deliveries,
        reason=told.get("Dead-Letter-Text", ""),
        message=RawStreamMsg(
            subject=told.get("Dead-Letter-Subject", message.subject),
            seq=sequence,
            hdrs=block_of(message.headers),
            data=message.data,
        ),
        holds_message=True,
    )


def _chosen(call: Call, letter: Letter) -> bool:
    wanted = {"stream": letter.stream, "consumer": letter.consumer, "why": letter.why.value}
    return all(call.text(name) in ("", value) for name, value in wanted.items())


async def with_messages(
    call: Call, manager: "Manager", letters: Iterable[Letter]
) -> "list[Letter]":
    """The same with their messages; with `--subject` only those of such a subject."""
    gate = asyncio.Semaphore(LOOK_UPS)

    async def looked_up(letter: Letter) -> Letter:
        if letter.holds_message:
            return letter
        async with gate:
            return replace(letter, message=await message_of(manager, letter))

    found = await asyncio.gather(*map(looked_up, letters))
    pattern = call.text("subject")
    return [
        one
        for one in found
        if not pattern or (one.message is not None and matches(pattern, one.message.subject))
    ]


async def message_of(manager: "Manager", letter: Letter) -> RawStreamMsg | None:
    """The message that was given up; None when it, or its stream, is gone."""
    try:
        return await manager.message(letter.stream, seq=letter.sequence)
    except ApiError as error:
        if error.err_code not in (NO_MESSAGE, NO_STREAM):
            raise
        return None


async def forget(manager: "Manager", stream: str, letter: Letter) -> None:
    """Takes the notes of a dead letter away; one that is gone already is no error."""
    for sequence in letter.notes:
        try:
            await manager.delete_message(stream, sequence, erase=False)
        except ApiError as error:
            if error.err_code not in _GONE:
                raise


_GONE = (NO_MESSAGE, 10057, 10043)
"""Not there, in the three ways that servers say it."""


def by_ids(letters: list[Letter], ids: Iterable[str]) -> list[Letter]:
    """The dead letters of these numbers. Raises UsageError and NotFound."""
    known = {note: letter for letter in letters for note in letter.notes}
    found: dict[int, Letter] = {}
    for text in ids:
        if not is_count(text):
            raise UsageError(f"expected the number of a dead letter, got '{text}'")
        letter = known.get(int(text))
        if letter is None:
            raise NotFound(f"no dead letter has the number {text}", hints=("see jsctl dlq list",))
        found[letter.id] = letter
    return list(found.values())


def chosen_letters(call: Call, letters: list[Letter]) -> list[Letter]:
    """Those that numbers or flags name. Raises UsageError when nothing was named."""
    ids = call.texts("id")
    if ids:
        return by_ids(letters, ids)
    named = ("stream", "consumer", "subject", "why", "since")
    if not call.flag("all") and not any(map(call.given, named)):
        raise UsageError("choose dead letters by their numbers, by flags, or with --all")
    return letters


def check_stays(letter: Letter) -> RawStreamMsg:
    """The message. Raises Conflict when it is gone."""
    if letter.message is None:
        raise Conflict(f"message {letter.sequence} of stream {letter.stream} is gone")
    return letter.message
