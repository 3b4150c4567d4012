"""JetStream administration in one object: streams, consumers, groups, messages.

Methods are thin: one request each, except the paged lists. Errors: `ApiError` for what the
server refuses, `Unreachable` for silence.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from jsctl.api.cluster import Placement
from jsctl.api.codec import decode, encode
from jsctl.api.stream import (
    PubAck,
    RawStreamMsg,
    StreamCheck,
    StreamConfig,
    StreamInfo,
    StreamState,
)
from jsctl.api.words import SERVER_KEYS
from jsctl.client.connection import Log, connect
from jsctl.client.requests import Requester
from jsctl.client.stored import direct_answer, stored_answer
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError
from jsctl.settings import Settings

if TYPE_CHECKING:
    from jsctl.api.account import AccountInfo
    from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
    from jsctl.api.responses import ChainHead, MetaRescueResponse, StreamAudit, StreamRescueResponse
    from jsctl.client.library import NatsClient

T = TypeVar("T")
PAGES_MAX = 10_000
"""A server that never finishes its pages is given up after so many."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All items of a paged list. `missing` did not answer in time, `offline` cannot: why."""

    items: list[T]
    missing: tuple[str, ...] = ()
    offline: dict[str, str] = field(default_factory=dict)


@asynccontextmanager
async def open_manager(settings: Settings, log: Log | None = None) -> "AsyncIterator[Manager]":
    """A manager with a connection of its own."""
    async with connect(settings, log, what="setup failed") as client:
        yield Manager(client, settings, log)


class Manager:
    """Requests of one account; `client` is not closed by it."""

    def __init__(self, client: "NatsClient", settings: Settings, log: Log | None = None) -> None:
        self.client = client
        self.settings = settings
        self.requests = Requester(client, settings, log)

    def with_timeout(self, timeout_ns: int) -> "Manager":
        """The same connection, but requests are given up sooner (or later)."""
        return Manager(self.client, replace(self.settings, timeout_ns=timeout_ns))

    # Account

    async def account_info(self) -> "AccountInfo":
        """Limits and use of the account."""
        from jsctl.api.account import AccountInfo

        return await self.requests.call(AccountInfo, "account_info")

    async def server_level(self) -> int:
        """The API level of the servers; 0 before version 2.11."""
        return (await self.account_info()).api.level

    # Streams

    async def streams(self, subject: str = "") -> Listing[StreamInfo]:
        """All streams, by name; `subject` limits them to those that listen on it."""
        pages = await self._pages("stream_list", "streams", subject=subject)
        items = [decode(StreamInfo, item) for item in pages.items]
        return Listing(items, pages.missing, pages.offline)

    async def stream_names(self, subject: str = "") -> list[str]:
        """All names, also of streams that cannot answer."""
        return [
            str(name)
            for name in (await self._pages("stream_names", "streams", subject=subject)).items
        ]

    async def stream_info(self, name: str, *, deleted_details: bool = False) -> StreamInfo:
        """One stream; `deleted_details` lists deleted sequences."""
        body = {"offset": 0, "deleted_details": True} if deleted_details else None
        return _stream_info(await self.requests.ask("stream_info", name, body=body))

    async def stream_subjects(self, name: str, subject: str = ">") -> dict[str, int]:
        """Subjects with their message counts, all pages."""
        found: dict[str, int] = {}
        async for page in self.subject_pages(name, subject):
            found.update(page)
        return found

    async def subject_pages(
        self, name: str, subject: str = ">"
    ) -> AsyncGenerator[dict[str, int], None]:
        """The same as they come: of a stream that may have more than are to be kept."""
        seen = 0
        for _ in range(PAGES_MAX):
            body = {"offset": seen, "subjects_filter": subject}
            document = await self.requests.ask("stream_info", name, body=body)
            page = decode(StreamState, document.get("state") or {}).subjects
            if not page:
                return
            yield page
            seen += len(page)
            total = document.get("total")
            if not isinstance(total, int) or seen >= total:
                return

    async def create_stream(self, config: StreamConfig, *, level: int = 0) -> StreamInfo:
        """Makes a stream."""
        return _stream_info(
            await self.requests.ask("stream_create", config.name, body=config, level=level)
        )

    async def update_stream(self, config: StreamConfig, *, level: int = 0) -> StreamInfo:
        """Changes a stream."""
        return _stream_info(
            await self.requests.ask("stream_update", config.name, body=config, level=level)
        )

    async def delete_stream(self, name: str) -> None:
        """Removes a stream and all its messages."""
        await self.requests.ask("stream_delete", name)

    async def purge(self, name: str, *, subject: str = "", seq: int = 0, keep: int = 0) -> int:
        """Removes messages and returns how many; `seq` and `keep` exclude each other."""
        body: dict[str, object] = {}
        for key, value in (("seq", seq), ("filter", subject), ("keep", keep)):
            if value:
                body[key] = value
        document = await self.requests.ask("stream_purge", name, body=body or None)
        purged = document.get("purged", 0)
        return purged if isinstance(purged, int) else 0

    async def check_stream(self, name: str, *, start: bool = False) -> StreamCheck | None:
        """How far the check of a stream's replicas is; `start` begins one, unless one goes on.

        None if there never was one, or a server does not know checks.
        """
        from jsctl.api.requests import StreamCheckRequest
        from jsctl.api.responses import StreamCheckResponse

        body = StreamCheckRequest(start=start)
        return (
            await self.requests.call(StreamCheckResponse, "stream_check", name, body=body)
        ).check

    async def audit_stream(self, name: str, *, start: bool = False) -> "StreamAudit | None":
        """How far the audit of a stream's replicas is; `start` begins one, unless one goes on.

        None if the leader knows of none.
        """
        from jsctl.api.requests import StreamCheckRequest
        from jsctl.api.responses import StreamAuditResponse

        body = StreamCheckRequest(start=start)
        return (
            await self.requests.call(StreamAuditResponse, "stream_audit", name, body=body)
        ).audit

    async def verify_stream(self, name: str, *, start: bool = False) -> "StreamAudit | None":
        """As `audit_stream`: whether the messages of all replicas fit into the stream's chain."""
        from jsctl.api.requests import StreamCheckRequest
        from jsctl.api.responses import StreamAuditResponse

        body = StreamCheckRequest(start=start)
        return (
            await self.requests.call(StreamAuditResponse, "stream_verify", name, body=body)
        ).audit

    async def chain_head(self, name: str, *, seq: int = 0) -> "ChainHead":
        """The hash of a stream's chain behind a message; 0: behind the last one."""
        from jsctl.api.requests import StreamHeadRequest
        from jsctl.api.responses import StreamHeadResponse

        body = StreamHeadRequest(seq=seq)
        found = await self.requests.call(StreamHeadResponse, "stream_head", name, body=body)
        if found.chain is None:
            raise JsctlError("the answer has no head")
        return found.chain

    # Messages

    async def message(
        self, stream: str, *, seq: int = 0, last_for: str = "", next_for: str = ""
    ) -> RawStreamMsg:
        """One stored message: by sequence, last of a subject, or next at or after `seq`."""
        body: dict[str, object] = {}
        if seq:
            body["seq"] = seq
        if last_for:
            body["last_by_subj"] = last_for
        if next_for:
            body["next_by_subj"] = next_for
        document = await self.requests.ask("stream_msg_get", stream, body=body)
        return decode(RawStreamMsg, document.get("message", {}))

    async def direct_message(
        self, stream: str, *, seq: int = 0, last_for: str = ""
    ) -> RawStreamMsg:
        """One stored message from any replica; the stream has to allow it.

        Raises ApiError as `message` does when there is none.
        """
        names, body = (stream, last_for) if last_for else (stream,), {"seq": seq} if seq else None
        return direct_answer(await self.requests.answer("direct_get", *names, body=body))

    async def store(
        self, subject: str, payload: bytes, headers: dict[str, str] | None = None
    ) -> PubAck:
        """Publishes a message into a stream. Raises ApiError, and Unreachable without a stream."""
        document = stored_answer(await self.requests.exchange(subject, payload, headers))
        return decode(PubAck, document)

    async def delete_message(self, stream: str, seq: int, *, erase: bool = True) -> None:
        """Removes one message; `erase` overwrites its bytes."""
        body: dict[str, object] = {"seq": seq}
        if not erase:
            body["no_erase"] = True
        await self.requests.ask("stream_msg_delete", stream, body=body)

    # Groups

    async def step_down_stream(self, name: str, preferred: str = "") -> None:
        """Asks the leader of a stream to hand over."""
        body = _placement(preferred)
        await self.requests.ask(
            "stream_leader_stepdown", name, body=body, level=1 if preferred else 0
        )

    async def step_down_consumer(self, stream: str, name: str, preferred: str = "") -> None:
        """Asks the leader of a consumer to hand over."""
        body = _placement(preferred)
        await self.requests.ask(
            "consumer_leader_stepdown", stream, name, body=body, level=1 if preferred else 0
        )

    async def step_down_meta(self, placement: Placement | None = None) -> None:
        """Asks the meta leader to hand over; needs the system account."""
        body = {"placement": encode(placement)} if placement else {}
        await self.requests.ask("meta_leader_stepdown", body=body)

    async def remove_stream_peer(self, stream: str, peer: str) -> None:
        """Moves a stream away from a server (name or peer id)."""
        await self.requests.ask("stream_remove_peer", stream, body={"peer": peer})

    async def evacuate_stream(self, stream: str, peer: str) -> None:
        """Takes a stream off a server that is still there."""
        await self.requests.ask("stream_evacuate_peer", stream, body={"peer": peer})

    async def evacuate_consumer(self, stream: str, name: str, peer: str) -> None:
        """Takes a consumer off a server that is still there."""
        await self.requests.ask("consumer_evacuate_peer", stream, name, body={"peer": peer})

    async def cancel_stream_move(self, stream: str) -> None:
        """A stream that is moving goes back."""
        await self.requests.ask("stream_cancel_move", stream)

    async def evacuate_server(self, peer: str) -> dict[str, object]:
        """Moves everything off a server; needs the system account."""
        return await self.requests.ask("meta_server_evacuate", body={"peer": peer})

    async def remove_server(self, peer: str = "", peer_id: str = "") -> None:
        """Removes a server from the meta group; needs the system account."""
        body = {"peer": peer, "peer_id": peer_id} if peer_id else {"peer": peer}
        await self.requests.ask("meta_server_remove", body=body)

    async def rescue_meta(self, quorum: int, expected: int) -> "list[MetaRescueResponse]":
        """Has each server take so many for enough in the meta group; needs the system account."""
        from jsctl.api.responses import MetaRescueResponse

        body = {"quorum_needed": quorum}
        found = await self.requests.ask_all("meta_rescue", body=body, expected=expected)
        return [decode(MetaRescueResponse, one) for one in found]

    async def rescue_stream(
        self, stream: str, quorum: int = 0, server: str = ""
    ) -> "list[StreamRescueResponse]":
        """What each server has of a stream; with a quorum, one goes on with so many replicas."""
        from jsctl.api.responses import StreamRescueResponse

        body = {"quorum_needed": quorum, "server": server} if server else {"quorum_needed": quorum}
        expected = 1 if server else 0
        found = await self.requests.ask_all("stream_rescue", stream, body=body, expected=expected)
        return [decode(StreamRescueResponse, one) for one in found]

    async def purge_account(self, account: str) -> None:
        """Deletes everything JetStream keeps for an account; needs the system account."""
        await self.requests.ask("account_purge", account)

    # Consumers

    async def consumers(self, stream: str) -> "Listing[ConsumerInfo]":
        """All consumers of a stream, by name."""
        from jsctl.api.consumer import ConsumerInfo

        pages = await self._pages("consumer_list", "consumers", stream)
        items = [decode(ConsumerInfo, item) for item in pages.items]
        return Listing(items, pages.missing, pages.offline)

    async def consumer_names(self, stream: str) -> list[str]:
        """All names, also of consumers that cannot answer."""
        pages = await self._pages("consumer_names", "consumers", stream)
        return [str(name) for name in pages.items]

    async def consumer_info(self, stream: str, name: str) -> "ConsumerInfo":
        """One consumer."""
        from jsctl.api.consumer import ConsumerInfo

        return await self.requests.call(ConsumerInfo, "consumer_info", stream, name)

    async def create_consumer(
        self, stream: str, config: "ConsumerConfig", *, action: str = "create", level: int = 0
    ) -> "ConsumerInfo":
        """Makes or changes a consumer; `action` is create, update or empty for either."""
        from jsctl.api.consumer import ConsumerInfo

        names = [stream]
        name = config.name or config.durable_name
        if name:
            names.append(name)
        if config.filter_subject and name:
            names.append(config.filter_subject)
        body: dict[str, object] = {"stream_name": stream, "config": encode(config)}
        body["action"] = action
        return await self.requests.call(
            ConsumerInfo, "consumer_create", *names, body=body, level=level
        )

    async def delete_consumer(self, stream: str, name: str) -> None:
        """Removes a consumer."""
        await self.requests.ask("consumer_delete", stream, name)

    async def pause_consumer(self, stream: str, name: str, until: str) -> dict[str, object]:
        """Pauses until an RFC 3339 time, or resumes when it is empty."""
        body = {"pause_until": until} if until else None
        return await self.requests.ask("consumer_pause", stream, name, body=body, level=1)

    async def unpin_consumer(self, stream: str, name: str, group: str) -> None:
        """Frees the pinned client of a priority group."""
        await self.requests.ask("consumer_unpin", stream, name, body={"group": group}, level=1)

    async def reset_consumer(self, stream: str, name: str, seq: int = 0) -> "ConsumerInfo":
        """Sets a consumer back to a stream sequence; 0 is its acknowledgement floor."""
        from jsctl.api.consumer import ConsumerInfo

        body = {"seq": seq} if seq else None
        return await self.requests.call(
            ConsumerInfo, "consumer_reset", stream, name, body=body, level=4
        )

    # Pages

    async def _pages(
        self, operation: str, key: str, *names: str, subject: str = ""
    ) -> Listing[object]:
        items: list[object] = []
        missing: list[str] = []
        offline: dict[str, str] = {}
        seen: set[str] = set()  # servers name an offline asset both as an item and as missing
        for _ in range(PAGES_MAX):
            body: dict[str, object] = {"offset": len(seen)}
            if subject:
                body["subject"] = subject
            document = await self.requests.ask(operation, *names, body=body)
            page = _items(document.get(key))
            gone = _items(document.get("missing"))
            items += page
            missing += [str(name) for name in gone]
            more = document.get("offline")
            offline.update(more if isinstance(more, dict) else {})
            total = document.get("total")
            seen.update(_name_of(item) for item in (*page, *gone))
            if not page or not isinstance(total, int) or len(seen) >= total:
                return Listing(items, tuple(dict.fromkeys(missing)), offline)
        raise JsctlError(f"{operation}: the server never finished its list")


def _name_of(item: object) -> str:
    """The name of a listed stream or consumer, or the item if it is a name."""
    if not isinstance(item, dict):
        return str(item)
    config = item.get("config")
    named = item.get("name") or (config.get("name") if isinstance(config, dict) else "")
    return str(named)


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


def _placement(preferred: str) -> dict[str, object]:
    return {"placement": {"preferred": preferred}} if preferred else {}


def _stream_info(document: dict[str, object]) -> StreamInfo:
    for key in ("type", "did_create", "total", "offset", "limit"):
        document.pop(key, None)
    return decode(StreamInfo, document)


def without_server_metadata(metadata: dict[str, str]) -> dict[str, str]:
    """What people set."""
    return {key: value for key, value in metadata.items() if key not in SERVER_KEYS}


def as_request(config: StreamConfig) -> StreamConfig:
    """A configuration read from a server, ready to be sent to one."""
    return replace(config, metadata=without_server_metadata(config.metadata))
