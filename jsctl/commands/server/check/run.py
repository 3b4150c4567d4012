"""What all checks share: failures become part of the result, which decides the exit code."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.strict import DecodeError
from jsctl.client.failures import foreign_errors, translate
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import save
from jsctl.errors import JsctlError
from jsctl.render.reports.server.check import EXIT_CODES, CheckResult, human, nagios, prometheus

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient
    from jsctl.client.manager import Manager

NOT_LOADED = "could not load info"
NOT_CONNECTED = "connection failed"
Body = Callable[[Call, CheckResult], Awaitable[None]]


class Stopped(Exception):
    """Nothing more can be found out; the reason is in the result already."""


async def checked(call: Call, suite: str, name: str, body: Body) -> int:
    """Runs a check, prints what it found, and returns the exit code of a Nagios plugin."""
    result = CheckResult(suite, name)
    await carried_out(call, result, body)
    form = _format(call)
    text = _rendered(call, result, form)
    if call.text("outfile"):
        save(Path(call.text("outfile")), text + "\n")
    else:
        call.output.print(text)
    return 0 if form == "prometheus" else EXIT_CODES[result.status]


async def carried_out(call: Call, result: CheckResult, body: Body) -> None:
    """Runs a check to its end; what keeps it from that is critical."""
    try:
        await body(call, result)
    except Stopped:
        pass
    except (ApiError, JsctlError) as error:
        result.critical(f"Check failed: {error}")
    except DecodeError as error:
        result.critical(f"Check failed: the server's answer cannot be read: {error}")


def _format(call: Call) -> str:
    if not call.given("format") and call.output.asked:
        return call.output.form
    return call.text("format")


def _rendered(call: Call, result: CheckResult, form: str) -> str:
    if form == "prometheus":
        return prometheus([result], call.text("namespace"))
    if form == "text":
        return human(result, call.output.theme)
    if form == "nagios":
        return nagios(result)
    from jsctl.render import formats

    render = {"json": formats.as_json, "jsonl": formats.as_json_line, "yaml": formats.as_yaml}
    if form not in render:
        return formats.document_rows(result.document(), form)
    return render[form](result.document())


@contextmanager
def critical_if_it_fails(result: CheckResult, what: str) -> Iterator[None]:
    """An error inside ends the check as a critical one; `carried_out` tells what cannot be read."""
    try:
        yield
    except DecodeError:
        raise
    except (ApiError, JsctlError) as error:
        result.critical(f"{what}: {error}")
        raise Stopped from None
    except foreign_errors() as error:
        result.critical(f"{what}: {translate(error)}")
        raise Stopped from None


@asynccontextmanager
async def client_for(
    call: Call, result: CheckResult, what: str = NOT_CONNECTED
) -> "AsyncIterator[NatsClient]":
    """A connection; one that cannot be made is critical."""
    async with AsyncExitStack() as stack:
        with critical_if_it_fails(result, what):
            client = await stack.enter_async_context(call.client())
        yield client


@asynccontextmanager
async def manager_for(
    call: Call, result: CheckResult, what: str = NOT_LOADED
) -> "AsyncIterator[Manager]":
    """The JetStream API on a connection of the check."""
    from jsctl.client.manager import Manager

    async with client_for(call, result, what) as client:
        yield Manager(client, call.settings, call.output.log)


def seconds(call: Call, name: str) -> float:
    """A threshold given as a duration."""
    return call.duration(name) / 1e9
