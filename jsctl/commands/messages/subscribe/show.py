"""Shows the messages that a subscription gets as they come, or counts them."""

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING

from jsctl.api.strict import quoted
from jsctl.api.subjects import AckSubject, parse_ack
from jsctl.api.times import SECOND_NS, format_duration
from jsctl.client.wire.subjects import exact
from jsctl.commands.toolkit.content.bodies import (
    header_lines,
    header_values,
    print_body,
    translated,
    write_bytes,
)
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError
from jsctl.files import new_folder, write_at_once
from jsctl.render.formats import as_json_line
from jsctl.render.humanize import moment_ns, number
from jsctl.render.reports.subjects import (
    SUBJECT_COLUMNS,
    busiest,
    subject_footer,
    subject_title,
)
from jsctl.render.table import safe

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

TICK_S = 1.0
NUMBER_END = 1 << 63
CLEAR = "\x1b[2J\x1b[H"

Record = Callable[[str, AckSubject | None, Mapping[str, str] | None, bytes], None]
"""Hears of every message that is shown: subject, where it is stored, headers, body."""

Arrived = asyncio.Queue[tuple[str, "Msg"]]
"""Pairs of the subscription's pattern and a message."""


class Shown:
    """Counts messages and prints them as the flags of `sub` say."""

    def __init__(self, call: Call, folder: Path | None) -> None:
        """`folder` is there, and messages become files in it."""
        self.call = call
        self.count = 0
        self.counts: dict[str, tuple[int, int]] = {}
        self.reporting = call.flag("report-subjects") or call.flag("report-subscriptions")
        self._limit = call.integer("count")
        self._started_ns = monotonic_ns()
        self._folder = folder
        self.record: Record | None = None

    @property
    def done(self) -> bool:
        """Whether `--count` messages have been shown."""
        return bool(self._limit) and self.count >= self._limit

    def show(
        self,
        subject: str,
        reply: str,
        headers: Mapping[str, str] | None,
        data: bytes,
        *,
        pattern: str = "",
        stored: AckSubject | None = None,
        direct: bool = False,
    ) -> None:
        """One message; `pattern` is the subscription it came by, `direct` that no consumer did."""
        self.count += 1
        if self.record is not None:
            self.record(subject, stored, headers, data)
            if self.call.flag("quiet"):
                return
        if self.reporting:
            key = pattern if self.call.flag("report-subscriptions") else subject
            messages, size = self.counts.get(key, (0, 0))
            self.counts[key] = (messages + 1, size + len(data))
            return
        if self.call.text("dump"):
            self._dump(subject, reply, headers, data)
            return
        if self.call.flag("raw"):
            print_body(self.call, translated(self.call, data, subject), raw=True)
            return
        if self.call.output.form in ("json", "jsonl"):
            document = self._document(subject, reply, headers, data)
            self.call.output.print(as_json_line(document))
            self.call.output.stdout.flush()
            return
        if self.call.output.asked:
            self._row(subject, headers, data)
            return
        where = _received(subject, reply, stored, direct=direct)
        self._print(f"Received {where}", headers, data, subject)

    def show_reply(self, subject: str, headers: Mapping[str, str] | None, data: bytes) -> None:
        """The answer to the request that was shown last."""
        if self.record is not None:
            self.record(subject, None, headers, data)
            if self.call.flag("quiet"):
                return
        if self.call.flag("raw"):
            print_body(self.call, data, raw=True)
        elif self.call.text("dump"):
            self._dump(subject, "", headers, data, what="_reply")
        elif self.call.output.form in ("json", "jsonl"):
            document = self._document(subject, "", headers, data)
            self.call.output.print(as_json_line(document))
        elif self.call.output.asked:
            self._row(subject, headers, data)
        else:
            self._print(f"Matched reply on {quoted(exact(subject))}", headers, data, subject)

    def _row(self, subject: str, headers: Mapping[str, str] | None, data: bytes) -> None:
        text = translated(self.call, data, subject).decode("utf-8", "backslashreplace")
        document = {"subject": subject, "headers": header_lines(headers), "data": text}
        self.call.output.json_line(document)
        self.call.output.stdout.flush()

    def _print(
        self,
        where: str,
        headers: Mapping[str, str] | None,
        data: bytes,
        subject: str,
    ) -> None:
        output = self.call.output
        output.print(f"[#{self.count}]{self._when()} {safe(where)}")
        if not self.call.flag("subjects-only"):
            lines = header_lines(headers)
            for line in [*lines, ""] if lines else []:
                output.print(safe(line))
            if not self.call.flag("headers-only"):
                print_body(self.call, translated(self.call, data, subject), raw=False)
        output.stdout.flush()

    def _when(self) -> str:
        if self.call.flag("timestamp"):
            now_ns = time.time_ns()
            clock = time.strftime("%b %e %H:%M:%S", time.localtime(now_ns // 10**9))
            return f" @ {clock}.{now_ns // 1000 % 10**6:06d}"
        if self.call.flag("delta-time"):
            return f" @ {format_duration(monotonic_ns() - self._started_ns)}"
        return ""

    def _document(
        self, subject: str, reply: str, headers: Mapping[str, str] | None, data: bytes
    ) -> dict[str, object]:
        header = header_values(headers) or None
        return {
            "Subject": subject,
            "Reply": reply,
            "Header": header,
            "Data": b64encode(data).decode() or None,
        }

    def _dump(
        self,
        subject: str,
        reply: str,
        headers: Mapping[str, str] | None,
        data: bytes,
        what: str = "",
    ) -> None:
        data = translated(self.call, data, subject)
        text = json.dumps({**self._document(subject, reply, headers, data), "Sub": None})
        if self._folder is None:
            write_bytes(self.call, text.encode() + b"\0")
            return
        path = self._folder / f"{self.count}{what}.json"
        try:
            write_at_once(path, text.encode())
        except OSError as error:
            raise JsctlError(f"cannot write to {path}: {error.strerror}") from None

    def report(self, *, redraw: bool) -> None:
        """The table of what was counted."""
        top = self.call.integer("report-top")
        rows = busiest(self.counts, top)
        output = self.call.output
        if redraw and output.stdout.isatty():
            output.stdout.write(CLEAR)
        kind = "Subscriptions" if self.call.flag("report-subscriptions") else "Subjects"
        title = subject_title(top, kind)
        output.table(rows, SUBJECT_COLUMNS, title, footer=subject_footer(rows))
        if not output.machine:
            output.print()
        output.stdout.flush()


@contextmanager
def dump_folder(call: Call) -> Iterator[Path | None]:
    """The folder of `--dump`, which is not left behind by what is refused; None for none.

    Raises JsctlError.
    """
    target = call.text("dump")
    if not target or target == "-":
        yield None
        return
    folder = Path(target)
    with ExitStack() as made:
        try:
            made.enter_context(new_folder(folder))
        except OSError as error:
            raise JsctlError(f"cannot write to {target}: {error.strerror}") from None
        yield folder


def _received(subject: str, reply: str, stored: AckSubject | None, *, direct: bool) -> str:
    """Where a message came from."""
    if stored is None:
        answer = f" with reply {quoted(exact(reply))}" if reply else ""
        return f"on {quoted(exact(subject))}{answer}"
    end = f"subject: {subject} / time: {moment_ns(stored.time_ns)}"
    if direct:
        return (
            f"JetStream message (direct): stream: {stored.stream} seq {stored.stream_seq} / {end}"
        )
    return (
        f"JetStream message: stream: {stored.stream} "
        f"seq: {number(stored.stream_seq)} / pending: {number(stored.pending)} / {end}"
    )


def stored_of(reply: str) -> AckSubject | None:
    """Where JetStream keeps a message, told by its reply subject; None for one that anybody has
    chosen, with numbers that no server has."""
    found = parse_ack(reply.encode()) if reply.startswith("$JS.ACK.") else None
    return found if found and max(found.time_ns, found.stream_seq) < NUMBER_END else None


async def show_all(
    call: Call,
    shown: Shown,
    arrived: Arrived,
    client: "NatsClient",
    taken: "Callable[[Msg], Awaitable[bool]] | None" = None,
    ended: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Shows messages until enough came, or silence lasted too long.

    Ctrl-C is the end of a recording, which is whole then; what is only shown is broken off, with
    the last report.
    `taken` hears of every message that was shown and tells whether it was the last one; `ended` is
    asked in every second of silence whether another one is to come.
    """
    try:
        await _show_arriving(call, shown, arrived, taken, ended)
    except asyncio.CancelledError:
        if shown.record is None:
            if shown.reporting:
                shown.report(redraw=False)
            raise


async def _show_arriving(
    call: Call,
    shown: Shown,
    arrived: Arrived,
    taken: "Callable[[Msg], Awaitable[bool]] | None",
    ended: Callable[[], Awaitable[bool]] | None,
) -> None:
    ignored = ignored_by(call)
    loop = asyncio.get_running_loop()
    silence = max(0, call.duration("wait")) / SECOND_NS
    heard = loop.time()
    ticking = shown.reporting or ended is not None
    while not shown.done:
        wait = silence - (loop.time() - heard) if silence else None
        try:
            async with asyncio.timeout(min(wait or TICK_S, TICK_S) if ticking else wait):
                pattern, message = await arrived.get()
        except TimeoutError:
            if silence and loop.time() - heard >= silence:
                return
            if ended is not None and await ended():
                return
            if shown.reporting:
                shown.report(redraw=True)
            continue
        heard = loop.time()
        if not ignored(message.subject):
            _show(shown, pattern, message)
        if taken is not None and await taken(message):
            return


def _show(shown: Shown, pattern: str, message: "Msg") -> None:
    shown.show(
        message.subject,
        message.reply,
        message.headers,
        message.data,
        pattern=pattern,
        stored=stored_of(message.reply),
    )


def announce(call: Call, text: str) -> None:
    """What is listened to, and what of it is not shown."""
    call.output.log(text)
    if ignored := call.words("ignore-subject"):
        call.output.note(f"Ignored subjects: {', '.join(ignored)}")


def ignored_by(call: Call) -> Callable[[str], bool]:
    """Tells which subjects `--ignore-subject` names; wildcards are understood."""
    patterns = [pattern.split(".") for pattern in call.words("ignore-subject")]

    def ignored(subject: str) -> bool:
        tokens = subject.split(".")
        return any(_matches(tokens, pattern) for pattern in patterns)

    return ignored


def _matches(tokens: list[str], pattern: list[str]) -> bool:
    for at, word in enumerate(pattern):
        if word == ">":
            return at < len(tokens)
        if at >= len(tokens) or word not in ("*", tokens[at]):
            return False
    return len(tokens) == len(pattern)
