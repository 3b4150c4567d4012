"""Messages of a stream into another one, each once and in order, however often it breaks off.

Each copy has the sequence it has in the source in a header, so the last message of the copy tells
where to go on. Each is stored under the condition that the one before it was stored last: nothing
comes twice or out of order, and another writer is noticed. It says, too, which stream it is for: no
other one takes it by its subject.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.stream import PubAck, StreamConfig, StreamInfo
from jsctl.client.headers import Headers, block_of, pairs_of, status_of
from jsctl.client.reading import StoredMessage, read_stream
from jsctl.client.stored import NO_MESSAGE, header_of, stored_answer
from jsctl.commands.toolkit.content.patterns import covers
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.errors import Conflict, JsctlError, Unreachable

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.manager import Manager

COPY_OF = "jsctl.copy-of"
"""Key in the copy's metadata: which stream it is one of."""
SEQUENCE = "Jsctl-Copy-Sequence"
"""Header of each copied message."""
AHEAD = 256
"""So many messages are on their way at once."""
AHEAD_BYTES = 8 * 1024 * 1024
WRONG_LAST_SEQUENCE = (10071, 10164)
WRONG_STREAM = 10060
_CONDITIONS = ("nats-expected-", "nats-batch-", "jsctl-copy-")


class Copier:
    """One copy of one stream."""

    def __init__(
        self, manager: "Manager", source: StreamInfo, target: "Manager", name: str, prefix: str
    ) -> None:
        self.origin = self.name_of(source)
        self._manager = manager
        self._source = source
        self._target = target
        self._name = name
        self._prefix = f"{prefix}." if prefix else ""
        self._last = 0
        self._replies: asyncio.Queue[Msg] = asyncio.Queue()
        self._inbox = ""
        self._known_ids: set[int] = set()
        """Sequences whose message id the copy has already: it is left out."""

    @staticmethod
    def name_of(source: StreamInfo) -> str:
        """The stream, and when it was made: one that was made anew is another one."""
        return f"{source.config.name} {source.created}"

    async def check(self, config: StreamConfig) -> None:
        """Raises Conflict for messages that a stream with this configuration would not store."""
        if self._source.config.allow_msg_counter:
            raise Conflict("messages of a counter are made by the server, they cannot be copied")
        if config.no_ack:
            raise Conflict(
                f"stream {self._name} does not say what it has stored",
                hints=("with --ack the copy acknowledges its messages",),
            )
        name = self._source.config.name
        async with aclosing(self._manager.subject_pages(name)) as pages:
            async for page in pages:
                for subject in page:
                    if not any(covers(one, self._prefix + subject) for one in config.subjects):
                        raise self._not_taken(subject, config.subjects)

    def _not_taken(self, subject: str, taken: Iterable[str] = ()) -> Conflict:
        """What is wrong with a message of this subject in the source, and what would help."""
        stored = self._prefix + subject
        subjects = f", only {', '.join(taken)}" if taken else ""
        hints: tuple[str, ...] = (f"--subjects has to name what takes {stored}, too",)
        if not self._prefix and self._target is self._manager:
            hints = (
                f"--prefix NAME stores them below one of their own, here NAME.{subject}",
                "in another context, --to CONTEXT, they keep their subjects",
            )
        return Conflict(
            f"messages are copied with their subjects, and stream {self._name} does not take "
            f"{stored}{subjects}",
            hints=hints,
        )

    async def position(self) -> int:
        """The sequence in the source of the last message that was copied, 0 for none.

        Raises Conflict when the copy does not say it any more.
        """
        state = (await self._target.stream_info(self._name)).state
        self._last = state.last_seq
        if not state.last_seq:
            return 0
        told = ""
        try:
            told = header_of(await self._target.message(self._name, seq=state.last_seq), SEQUENCE)
        except ApiError as error:
            if error.err_code != NO_MESSAGE.err_code:
                raise
        if not is_count(told):
            raise Conflict(
                f"the last message of stream {self._name} does not say what it is a copy of: "
                "it was removed, or somebody else stored it"
            )
        return int(told)

    async def run(self, start: int, left: Callable[[int], None]) -> int:
        """Copies what is behind `start`; `left` hears how many remain. Says how many it copied.

        Raises Conflict when somebody else writes into the copy, and what reading raises.
        """
        client = self._target.client
        self._inbox = client.new_inbox()
        subscription = await client.subscribe(f"{self._inbox}.*", cb=self._replies.put)
        copied = 0
        try:
            more = True
            while more:
                more = False
                async with aclosing(self._chunks(start)) as chunks:
                    async for chunk in chunks:
                        if await self._stored(chunk):
                            copied += len(chunk)
                            start = chunk[-1].seq
                            left(chunk[-1].pending)
                            continue
                        # A known id stopped it: the copy says how far it came.
                        now = await self.position()
                        copied += sum(start < one.seq <= now for one in chunk)
                        start, more = now, True
                        break
        finally:
            await subscription.unsubscribe()
        return copied

    async def _chunks(self, start: int) -> AsyncGenerator[list[StoredMessage], None]:
        chunk: list[StoredMessage] = []
        size = 0
        name = self._source.config.name
        async with aclosing(read_stream(self._manager, name, from_seq=start + 1)) as messages:
            async for message in messages:
                chunk.append(message)
                size += len(message.data)
                if len(chunk) == AHEAD or size > AHEAD_BYTES:
                    yield chunk
                    chunk, size = [], 0
        if chunk:
            yield chunk

    async def _stored(self, chunk: list[StoredMessage]) -> bool:
        """Whether all of them are; False when the id of one was known."""
        client = self._target.client
        for at, message in enumerate(chunk):
            await client.publish(
                self._prefix + message.subject,
                message.data,
                reply=f"{self._inbox}.{at}",
                headers=self._headers(message, self._last + at),
            )
        await client.flush()
        answers = await self._answers(len(chunk))
        for at, message in enumerate(chunk):
            ack = self._acknowledged(answers.get(at), message)
            if ack is None:
                return False
        self._last += len(chunk)
        return True

    async def _answers(self, count: int) -> "dict[int, Msg]":
        """By their place in the chunk; as many as come in time."""
        found: dict[int, Msg] = {}
        try:
            async with asyncio.timeout(self._target.settings.timeout):
                while len(found) < count:
                    reply = await self._replies.get()
                    found[int(reply.subject.rpartition(".")[2])] = reply
        except TimeoutError:
            raise Unreachable(
                f"stream {self._name} did not acknowledge {count - len(found)} messages in time",
                hints=("the same words go on where it ended",),
            ) from None
        return found

    def _acknowledged(self, reply: "Msg | None", message: StoredMessage) -> PubAck | None:
        """The acknowledgement; None for a duplicate. Raises Conflict for another writer."""
        assert reply is not None, "all have come"
        if status_of(reply.headers) == "503":
            raise self._not_taken(message.subject)
        try:
            document = stored_answer(bytes(reply.data))
        except ApiError as error:
            if error.err_code == WRONG_STREAM:
                raise self._not_taken(message.subject) from None
            if error.err_code in WRONG_LAST_SEQUENCE:
                raise Conflict(
                    f"somebody else stores messages in stream {self._name}: {error}"
                ) from None
            raise JsctlError(f"message {message.seq} could not be stored: {error}") from None
        if document.get("duplicate"):
            self._known_ids.add(message.seq)
            return None
        sequence = document.get("seq")
        return PubAck(stream=str(document.get("stream")), seq=int(str(sequence)))

    def _headers(self, message: StoredMessage, last: int) -> Headers:
        """Those of the message, with its place and the conditions."""
        kept: Iterable[tuple[str, str]] = pairs_of(block_of(message.headers or None))
        dropped = ("nats-msg-id",) if message.seq in self._known_ids else ()
        pairs = [
            (name, value)
            for name, value in kept
            if not name.lower().startswith((*_CONDITIONS, *dropped))
        ]
        conditions = [
            ("Nats-Expected-Stream", self._name),
            ("Nats-Expected-Last-Sequence", str(last)),
        ]
        made = Headers.of([*pairs, (SEQUENCE, str(message.seq)), *conditions])
        assert made is not None
        return made
