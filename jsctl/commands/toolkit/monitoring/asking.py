"""What all `server` commands do with a request: whom to ask, how many to wait for."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jsctl.api.server import EventFilterOptions
from jsctl.client.facts import known_servers, source_options
from jsctl.client.system import NoSystemRights
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, NotFound, UsageError

if TYPE_CHECKING:
    from jsctl.client.system import SystemReply, SystemSource

STATES: Mapping[str, int] = {"open": 0, "closed": 1, "all": 2}
"""The states of connections that CONNZ can be asked for."""

NO_RESULTS = (
    "no results received, ensure the account used has system privileges and appropriate permissions"
)


def count_of(call: Call, name: str) -> int:
    """A number of replies given as an argument; 0 when not given. Raises UsageError."""
    text = call.text(name)
    if not text:
        return 0
    if not is_count(text):
        raise UsageError(f"expected a number of servers for '{name}', got '{text}'")
    return int(text)


def report_filter(call: Call) -> EventFilterOptions:
    """Of reports; their `--host` is a server's name, as in natscli."""
    return _filter(call, server_name=call.text("host"))


def request_filter(call: Call) -> EventFilterOptions:
    """Of requests."""
    return _filter(call, server_name=call.text("name"), host=call.text("host"))


def _filter(call: Call, *, server_name: str, host: str = "") -> EventFilterOptions:
    cluster, tags = call.text("cluster"), call.words("tags")
    domain = call.settings.connection.jetstream_domain
    return EventFilterOptions(
        server_name=server_name,
        host=host,
        cluster=cluster,
        tags=tags,
        domain=domain,
        exact_match=bool(server_name or host or cluster),
    )


async def ask(
    system: "SystemSource",
    kind: str,
    options: Mapping[str, object] | None = None,
    *,
    where: EventFilterOptions,
    wanted: int = 0,
) -> "list[SystemReply]":
    """The replies; without `wanted` as many as there are servers. Raises NoSystemRights."""
    expected = wanted
    if not expected and where.server_name:
        expected = 1
    if not expected and not (where.host or where.cluster or where.tags or where.domain):
        expected = await servers_if_told(system)
    given = source_options(system, options or {})
    replies = await system.gather(kind, given, where=where, expected=expected)
    if not replies:
        raise nothing_from(system)
    return replies


def nothing_from(system: "SystemSource") -> JsctlError:
    """The error for no answers at all."""
    from jsctl.commands.toolkit.archives.source import ArchiveSystem

    if isinstance(system, ArchiveSystem):
        return NotFound(f"no captured server data in {system.path}")
    return NoSystemRights(NO_RESULTS)


async def servers_if_told(system: "SystemSource") -> int:
    """How many servers there are; an ordinary account may ask for its own part only."""
    try:
        return await known_servers(system)
    except NoSystemRights:
        return 0
