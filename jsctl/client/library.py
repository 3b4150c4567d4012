"""The client library as commands need it; imported only when a connection is made.

What is different: a refusal keeps the server's own words and is heard of at once; a ping leaves
behind what was published before it, so that a flush is a proof; credentials and TLS are used or
the connection fails; a SOCKS proxy may stand between; a task that is cancelled ends.
"""

import asyncio
import json
import ssl
import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from nats import errors
from nats.aio import client as library
from nats.aio import subscription, transport
from nats.aio.client import Client, Srv
from nats.aio.transport import TcpTransport, WebSocketTransport

from jsctl.client.headers import Headers, block_of, status_of
from jsctl.client.login import Login
from jsctl.client.refusals import Refusals, is_passing, sentence_of
from jsctl.client.wire.frames import frame_of
from jsctl.client.wire.parser import LineParser
from jsctl.client.wire.subjects import RawSubject, bytes_of, subject_of
from jsctl.errors import JsctlError

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from urllib.parse import ParseResult

    from nats.aio.msg import Msg

T = TypeVar("T")
FLUSH_S = 10.0
BUFFER_BYTES = 32 * 1024
_CONNECT = b"CONNECT "
_SECRETS = ("user", "pass", "auth_token", "jwt", "nkey", "sig")
_PING = b"PING\r\n"
NO_RESPONDERS = "503"


async def _wait_for(awaited: "Awaitable[T]", timeout: float | None) -> "T":
    """As that of Python 3.12. Below it a cancellation that comes with what is waited for is
    forgotten, and a task that tries one connection after another goes on for ever."""
    async with asyncio.timeout(timeout):
        return await awaited


def let_cancellations_through() -> None:
    """From now on the library waits as said above; all else stays as it is."""
    if sys.version_info >= (3, 12) or vars(library)["asyncio"] is not asyncio:
        return
    ours = ModuleType(asyncio.__name__)
    vars(ours).update(vars(asyncio), wait_for=_wait_for)
    for module in (library, subscription, transport):
        vars(module)["asyncio"] = ours


class NatsClient(Client):
    """One connection; `refusals` hears of what the server refuses."""

    def __init__(
        self, login: Login, refusals: Refusals, *, tls_wanted: bool = False, proxy: str = ""
    ) -> None:
        super().__init__()
        self._ps = LineParser(self)
        self.refusals = refusals
        self._login = login
        self._tls_wanted = tls_wanted
        self._proxy = proxy
        self.tried = 0
        """How many connections were begun, one for each server before the first one again."""
        self.is_system_account = False
        """Told by the server once it knows who has connected."""

    @property
    def inbox_pattern(self) -> str:
        """Where the replies to requests come in; empty before the first request."""
        return bytes(self._resp_sub_prefix).decode() + "*" if self._resp_sub_prefix else ""

    async def _process_err(self, err_msg: str) -> None:
        """What the server complains of, in its own words; the library knows them in lower case."""
        if "stale connection" in err_msg.lower():
            await super()._process_err(err_msg.lower())
            return
        text = sentence_of(err_msg)
        if not self.refusals.hear(text):
            await self._error_cb(errors.Error(text))
        if not is_passing(err_msg):
            await super()._process_err(err_msg.lower())
        self._err = errors.Error(text)

    async def _process_headers(self, headers: bytes | None) -> Headers | None:
        """All of them, with the bytes that they came as; the library leaves some out, and an error
        here would be the end of all reading."""
        return Headers.read(headers) if headers else None

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: "dict[str, str] | None"
    ) -> "Msg":
        """Also of subjects that are no UTF-8: whoever may publish chooses them."""
        made: Msg = super()._build_message(sid, b"", b"", data, headers)
        made.subject, made.reply = subject_of(subject), subject_of(reply)
        return made

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,
        old_style: bool = False,
        headers: "dict[str, Any] | None" = None,
    ) -> "Msg":
        """The answer, also one that has a header named `Status`."""
        assert not old_style, "nobody asks so"
        found = await self._request_new_style(subject, payload, timeout=timeout, headers=headers)
        if status_of(found.headers) == NO_RESPONDERS:
            raise errors.NoRespondersError
        return found

    async def _send_publish(
        self,
        subject: str,
        reply: str,
        payload: bytes,
        payload_size: int,
        headers: "dict[str, Any] | None",
    ) -> None:
        """Headers and subjects that came with a message leave as they came; with headers that are
        too large the server would close the connection."""
        block = block_of(headers)
        if headers and len(block) + payload_size > self.max_payload:
            raise errors.MaxPayloadError
        if not isinstance(headers, Headers) and not isinstance(subject, RawSubject):
            await super()._send_publish(subject, reply, payload, payload_size, headers)
            return
        command = frame_of(bytes_of(subject), payload, reply.encode(), block)
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += payload_size
        await self._send_command(command)
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()

    async def _process_pong(self) -> None:
        """The answer to a ping that nobody waits for any more is not an error."""
        if self._pongs and self._pongs[0].done():
            self._pongs.pop(0)
            self._pings_outstanding = 0
            return
        await super()._process_pong()

    async def flush(self, timeout: float = FLUSH_S) -> None:
        """Proof that everything published before was taken. Raises what was refused."""
        self.refusals.check()
        if self.is_closed:
            raise errors.ConnectionClosedError
        answered: asyncio.Future[bool] = asyncio.Future()
        await self._send_ping(answered)
        try:
            async with asyncio.timeout(timeout):
                await answered
        except TimeoutError:
            raise errors.FlushTimeoutError from None
        self.refusals.check()

    async def give_up_protocol(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The streams of the connection; the library reads and writes nothing any more.

        Only closing is still allowed.
        """
        await self.flush()
        tasks = (self._reading_task, self._ping_interval_task, self._flusher_task)
        running = [task for task in tasks if task is not None and not task.done()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        assert isinstance(self._transport, TcpTransport), "websockets have frames of their own"
        reader, writer = self._transport._io_reader, self._transport._io_writer
        assert reader is not None, "connected"
        assert writer is not None, "connected"
        return reader, writer

    async def _flush_pending(self, force_flush: bool = False) -> Any:
        """The library swallows a cancellation here."""
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        found = await super()._flush_pending(force_flush)
        if force_flush:
            self.refusals.check()
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError
        return found

    async def _send_ping(self, future: "asyncio.Future[bool] | None" = None) -> None:
        """Behind everything that waits to be sent: its answer says that all of it arrived."""
        self._pongs.append(future or asyncio.Future())
        await self._send_command(_PING)
        await self._flush_pending()

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Who asked for TLS gets it or no connection; credentials never go out without."""
        if initial_connection and self._tls_wanted and not info.get("tls_required"):
            if not info.get("tls_available") and not self.options["tls_handshake_first"]:
                raise errors.SecureConnWantedError
            info["tls_required"] = True
        self.is_system_account = bool(info.get("acc_is_sys", self.is_system_account))
        await super()._process_info(info, initial_connection)

    def _connect_command(self) -> bytes:
        """With the credentials that were given, whatever the server asks for."""
        fields = json.loads(super()._connect_command()[len(_CONNECT) :])
        for key in _SECRETS:
            fields.pop(key, None)
        url: ParseResult | None = self._current_server.uri if self._current_server else None
        try:
            fields.update(self._login(str(self._server_info.get("nonce", "")), url))
        except JsctlError as error:
            raise errors.Error(str(error)) from error
        return _CONNECT + json.dumps(fields, sort_keys=True).encode() + b"\r\n"

    async def _connect_to_server(self, s: Srv) -> None:
        self.tried += 1
        if s.uri.scheme in ("ws", "wss"):
            await self._open_websocket(s)
            return
        s.last_attempt = time.monotonic()
        self._transport = _Transport(self._proxy)
        await self._transport.connect(s.uri, BUFFER_BYTES, self.options["connect_timeout"])

    async def _open_websocket(self, s: Srv) -> None:
        """Raises OSError; that of a timeout, too, which the library leaves to websockets."""
        from aiohttp import ClientError

        await self._end_websocket()
        try:
            async with asyncio.timeout(self.options["connect_timeout"]):
                await super()._connect_to_server(s)
        except BaseException as error:
            await self._end_websocket()
            if isinstance(error.__cause__, ssl.SSLError):
                raise error.__cause__ from None
            if isinstance(error, ClientError) and not isinstance(error, OSError):
                raise ConnectionError("no websocket is there") from error
            raise

    async def _end_websocket(self) -> None:
        """What is left of one would be told of when the program ends; the next is made anew."""
        left = self._transport
        if isinstance(left, WebSocketTransport):
            self._transport = None
            if left._client is not None:
                await left._client.close()


class _Transport(TcpTransport):
    """A connection, perhaps one that a SOCKS proxy makes."""

    def __init__(self, proxy: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # has no types
        self._proxy = proxy

    async def connect(self, uri: "ParseResult", buffer_size: int, connect_timeout: int) -> None:
        """Raises OSError."""
        if not self._proxy:
            await super().connect(uri, buffer_size, connect_timeout)
            return
        from python_socks import ProxyError, ProxyTimeoutError
        from python_socks.async_.asyncio import Proxy

        made = Proxy.from_url(self._proxy, rdns=True)
        try:
            host, port = uri.hostname or "", uri.port or 0
            joined = await made.connect(host, port, timeout=connect_timeout)
        except (ProxyError, ProxyTimeoutError) as error:
            raise ConnectionError(f"the proxy says: {error}") from error
        reader, writer = await asyncio.open_connection(sock=joined, limit=buffer_size)
        self._bare_io_reader = self._io_reader = reader
        self._bare_io_writer = self._io_writer = writer

    async def readline(self) -> bytes:
        """A line of the greeting; the library would take a closed connection for a welcome."""
        line: bytes = await super().readline()  # type: ignore[no-untyped-call] # has no types
        if not line:
            raise errors.UnexpectedEOF
        return line

    async def connect_tls(
        self,
        uri: "str | ParseResult",
        ssl_context: ssl.SSLContext,
        buffer_size: int,
        connect_timeout: int,
    ) -> None:
        """Nothing is left of a connection whose handshake failed: its end would be waited for."""
        try:
            await super().connect_tls(uri, ssl_context, buffer_size, connect_timeout)
        except BaseException:
            if self._io_writer is not None:
                self._io_writer.transport.abort()
            self._io_reader = self._io_writer = None
            raise
