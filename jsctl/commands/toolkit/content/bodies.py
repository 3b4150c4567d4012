"""What the commands that send and show messages share."""

import os
import shlex
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jsctl.commands.toolkit.content.templates import filled_command, filled_header
from jsctl.commands.toolkit.grammar.spec import Kind, Option
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.reading import interruptible
from jsctl.errors import JsctlError, UsageError

if TYPE_CHECKING:
    from jsctl.client.headers import Headers

HEADER = Option(
    "header", "Adds headers to the message using K:V format", Kind.LIST, short="H", metavar="HEADER"
)
TEMPLATES = Option(
    "templates", "Enables template functions in the body and subject", Kind.SWITCH, default="true"
)
FORCE_STDIN = Option("force-stdin", "Force reading from stdin", Kind.FLAG)
SEND_ON = Option(
    "send-on",
    ("When to send data from stdin: 'eof' (default) or 'newline'"),
    default="eof",
    choices=("newline", "eof"),
)
TRANSLATE = Option(
    "translate",
    ("Translate the message data by running it through the given command before output"),
    metavar="TRANSLATE",
)
NIL_BODY = "nil body"


HeaderPairs = Sequence[tuple[str, str]]


def header_pairs(call: Call) -> HeaderPairs:
    """The `-H K:V` options; a name may be there several times. Raises UsageError."""
    found = any_header_pairs(call)
    for (name, _), text in zip(found, call.texts("header"), strict=True):
        if not name or len(name.split()) > 1:
            raise _no_header(text)
    return found


def any_header_pairs(call: Call) -> HeaderPairs:
    """The same where names are not those of a message, and may be any. Raises UsageError."""
    found: list[tuple[str, str]] = []
    for text in call.texts("header"):
        name, colon, value = text.partition(":")
        if not colon:
            raise _no_header(text)
        found.append((name.strip(), value.strip()))
    return found


def _no_header(text: str) -> UsageError:
    return UsageError(f'invalid header "{text}"', hints=("headers are KEY:VALUE",))


def check_names(headers: Mapping[str, str]) -> None:
    """Raises UsageError for headers without a name, which nobody would get."""
    if not all(name.strip() for name in headers):
        raise UsageError("nats: message could not decode headers")


def headers_of(call: Call) -> dict[str, str]:
    """The same where a name has one value."""
    return dict(header_pairs(call))


def filled_headers(pairs: HeaderPairs, count: int, *, behind: HeaderPairs = ()) -> "Headers | None":
    """Headers of a message, with the words in braces filled in, before others as they are."""
    from jsctl.client.headers import Headers

    filled = [(name, filled_header(name, value, count)) for name, value in pairs]
    return Headers.of((*filled, *behind))


def check_subject(subject: str) -> str:
    """The subject if one can publish on it; raises UsageError, UnicodeEncodeError if it is bytes
    that are no text."""
    subject.encode()
    if not subject or any(mark in subject for mark in " \t\r\n") or "" in subject.split("."):
        raise UsageError("nats: invalid subject")
    return subject


def check_queue(name: str) -> str:
    """The name of a queue group, which may be none; raises UsageError."""
    if any(mark in name for mark in " \t\r\n"):
        raise UsageError("nats: invalid queue name")
    return name


def bodies_of(call: Call, argument: str = "body", *, typed: bool = True) -> Iterator[str]:
    """The body argument, or what comes in: whole, or line by line.

    On a terminal it may be `typed`, where the output is one, too; else it is empty.
    """
    if call.given(argument):
        yield call.text(argument)
        return
    if not call.flag("force-stdin") and not _has_input(typed=typed):
        yield ""
        return
    if not call.flag("quiet"):
        call.output.log("Reading payload from STDIN")
    if call.text("send-on") == "newline":
        while line := interruptible(sys.stdin.buffer.readline):
            yield _text(line.removesuffix(b"\r\n").removesuffix(b"\n"))
        return
    yield _text(interruptible(sys.stdin.buffer.read))


def _text(data: bytes) -> str:
    """A body as it came: it may be anything, and goes out as the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def _has_input(*, typed: bool) -> bool:
    if sys.stdin is None:
        return False
    return not sys.stdin.isatty() or (typed and sys.stdout.isatty())


def header_values(headers: Mapping[str, str] | None) -> dict[str, list[str]]:
    """All values of each name, to be read."""
    from jsctl.client.headers import Headers, pairs_of, readable

    every = pairs_of(headers.block) if isinstance(headers, Headers) else ()
    several: dict[str, list[str]] = {}
    for key, value in every:
        several.setdefault(readable(key), []).append(readable(value))
    return {key: several.get(key, [last]) for key, last in (headers or {}).items()}


def every_header(headers: Mapping[str, str] | None) -> HeaderPairs:
    """All values of all names, to be passed on: byte by byte, but for their ends of lines."""
    from jsctl.client.headers import Headers, pairs_of

    if isinstance(headers, Headers):
        return list(pairs_of(headers.block))
    return list((headers or {}).items())


def header_lines(headers: Mapping[str, str] | None) -> list[str]:
    """`Key: value`, sorted as natscli does; all values of a name."""
    found = sorted(header_values(headers).items())
    return [f"{key}: {value}" for key, values in found for value in values]


def message_document(
    subject: str, headers: Mapping[str, str] | None, data: bytes
) -> dict[str, object]:
    """A message for programs: its body as text if it is, else in base64."""
    try:
        body: dict[str, object] = {"data": data.decode()}
    except UnicodeDecodeError:
        body = {"data_base64": b64encode(data).decode()}
    return {"subject": subject, "headers": header_lines(headers), **body}


def print_body(call: Call, body: bytes, *, raw: bool) -> None:
    """A body as `nats` shows it: a line, with space below unless `raw`.

    That there is none is not said of what a command of `--translate` left.
    """
    call.output.stdout.flush()
    if not call.text("translate"):
        body = body or NIL_BODY.encode()
    line = body if body.endswith(b"\n") else body + b"\n"
    space = b"" if raw else b"\n" if body.endswith(b"\n") else b"\n\n"
    write_bytes(call, line + space)


def write_bytes(call: Call, data: bytes) -> None:
    """Bytes to stdout, whatever they are."""
    out = call.output.stdout
    out.flush()
    buffer = getattr(out, "buffer", None)
    if buffer is None:
        out.write(data.decode("utf-8", "replace"))
        return
    buffer.write(data)
    buffer.flush()


def translated(call: Call, body: bytes, subject: str, stream: str = "") -> bytes:
    """The body after the command of `--translate`, if there is one."""
    command = call.text("translate")
    if "{{" in command:
        from jsctl.commands.toolkit.templating.parsing import TemplateError

        try:
            command = filled_command(command, subject, stream)
        except TemplateError as error:
            raise UsageError(f"--translate: {error}") from None
    return run_command(command, body) if command else body


def run_command(command: str, body: bytes) -> bytes:
    """What a command writes when it reads the body. Raises JsctlError."""
    import subprocess  # few commands start another program

    words = _words_of(command)
    with _not_run(words[0]):
        done = subprocess.run(words, input=body, capture_output=True, check=False)
    return _written(words[0], done.returncode, done.stdout, done.stderr)


async def run_command_beside(command: str, body: bytes, extra: Mapping[str, str]) -> bytes:
    """The same while the connection goes on; the command ends with who waits for it."""
    import asyncio

    words, pipe = _words_of(command), asyncio.subprocess.PIPE
    with _not_run(words[0]):
        running = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **extra}
        )
    try:
        out, err = await running.communicate(body)
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    return _written(words[0], await running.wait(), out, err)


def _words_of(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:  # what is filled in may have quotes
        raise JsctlError(f"could not parse command: {error}") from None
    if not words:
        raise UsageError("the command is empty")
    return words


@contextmanager
def _not_run(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JsctlError(f"could not run {name}: {error.strerror}") from None
    except ValueError as error:  # NULs, which no word and no variable can have
        raise JsctlError(f"could not run {name}: {error}") from None


def _written(name: str, status: int, out: bytes, err: bytes) -> bytes:
    if status:
        text = err.decode("utf-8", "replace").strip()
        raise JsctlError(f"{name} failed with exit status {status}: {text}")
    return out
