"""`server report downgrade`: what an older API level could not serve."""

from typing import TYPE_CHECKING

from jsctl.api.codec import encode
from jsctl.api.monitoring.jsz import AccountDetail, Jsz, JSzOptions, StreamDetail
from jsctl.client.facts import known_servers
from jsctl.client.system import NoSystemRights, SystemReply
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import watched
from jsctl.commands.toolkit.monitoring.asking import nothing_from
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, UsageError, prefixed
from jsctl.render.column import Column

if TYPE_CHECKING:
    from jsctl.client.system import SystemSource

PAGE = 1024
PAGES_MAX = 10_000
LEVEL_KEY = "_nats.req.level"


@dataclass(frozen=True, slots=True)
class Asset:
    """A stream, or a consumer when `consumer` is set, and the level it needs."""

    account: str
    stream: str
    level: int
    consumer: str = ""


_ACCOUNT: Column[Asset] = Column("account", "Account", lambda row: row.account)
_STREAM: Column[Asset] = Column("stream", "Stream", lambda row: row.stream)
_LEVEL: Column[Asset] = Column("api_level", "Required API level", lambda row: row.level)
STREAM_COLUMNS = (_ACCOUNT, _STREAM, _LEVEL)
CONSUMER_COLUMNS: tuple[Column[Asset], ...] = (
    _ACCOUNT,
    _STREAM,
    Column("name", "Consumer", lambda row: row.consumer),
    _LEVEL,
)


async def downgrade(call: Call) -> int | None:
    """Streams and consumers that need more than the level."""
    return await watched(call, _downgrade)


async def _downgrade(call: Call) -> None:
    text = call.text("api")
    if not is_count(text):
        raise UsageError(f"expected an API level, got '{text}'")
    if not call.as_json:
        call.output.say("Obtaining JetStream Asset information")
    async with call.system() as system:
        accounts = await _collect(system)
    streams, consumers = _beyond(accounts, int(text), everything=call.flag("all"))
    if call.as_json:
        call.output.json(_document(streams, consumers))
        return
    if call.output.machine:  # one table of both, so that a program reads it
        call.output.table([*streams, *consumers], CONSUMER_COLUMNS, "Assets")
        return
    if streams:
        call.output.table(streams, STREAM_COLUMNS, "Assets: Streams")
    if consumers:
        call.output.table(consumers, CONSUMER_COLUMNS, "Assets: Consumers")
    if not streams and not consumers:
        call.output.print("All assets are compatible with the specified API level.")


async def _collect(system: "SystemSource") -> dict[str, dict[str, StreamDetail]]:
    """Every stream of every account, by their names; replicas of one are the same."""
    found: dict[str, dict[str, StreamDetail]] = {}
    options = JSzOptions(accounts=True, streams=True, consumer=True, config=True, limit=PAGE)
    try:
        expected = await known_servers(system)
    except NoSystemRights as error:
        raise prefixed(error, "failed to get current active servers") from None
    replies = await system.gather("JSZ", encode(options), expected=expected)
    if not replies:
        raise nothing_from(system)
    for reply in replies:
        page = _accounts(reply)
        offset = 0
        for _ in range(PAGES_MAX):
            _merge(found, page)
            if len(page) < PAGE:
                break
            offset += PAGE
            more = {**encode(options), "offset": offset}
            again = await system.gather("JSZ", more, server_id=reply.server.id)
            page = _accounts(again[0]) if again else ()
    return found


def _accounts(reply: SystemReply) -> tuple[AccountDetail, ...]:
    if reply.error is not None:
        raise JsctlError(f"JSZ fetch failed: {reply.error.description}")
    return reply.as_(Jsz).account_details


def _merge(found: dict[str, dict[str, StreamDetail]], page: tuple[AccountDetail, ...]) -> None:
    for account in page:
        streams = found.setdefault(account.name, {})
        for stream in account.stream_detail:
            known = streams.get(stream.name)
            if known is None or len(known.consumer_detail) < len(stream.consumer_detail):
                streams[stream.name] = stream


def _level(metadata: dict[str, str]) -> int:
    text = metadata.get(LEVEL_KEY, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _beyond(
    accounts: dict[str, dict[str, StreamDetail]], level: int, *, everything: bool
) -> tuple[list[Asset], list[Asset]]:
    streams: list[Asset] = []
    consumers: list[Asset] = []
    for account, of_account in sorted(accounts.items()):
        for name, stream in sorted(of_account.items()):
            needed = _level(stream.config.metadata) if stream.config else 0
            if needed > level:
                streams.append(Asset(account, name, needed))
            whole = everything and needed > level
            shown = f"{name}*" if whole else name
            for one in sorted(stream.consumer_detail, key=lambda one: one.name):
                need = _level(one.config.metadata) if one.config else 0
                if need > level or whole:
                    consumers.append(Asset(account, shown, need, one.name))
    return streams, consumers


def _document(streams: list[Asset], consumers: list[Asset]) -> dict[str, object]:
    document: dict[str, object] = {}
    if streams:
        document["streams"] = [
            {"account": one.account, "name": one.stream, "api_level": one.level} for one in streams
        ]
    if consumers:
        document["consumers"] = [
            {
                "account": one.account,
                "name": one.consumer,
                "stream": one.stream,
                "api_level": one.level,
            }
            for one in consumers
        ]
    return document
