"""Runs `jsctl top`: one server and its connections, again and again."""

import asyncio
import socket
from functools import partial
from pathlib import Path
from time import monotonic

from jsctl.api.codec import encode
from jsctl.api.monitoring.connz import ConnInfo, Connz
from jsctl.api.monitoring.varz import Varz
from jsctl.api.server import EventFilterOptions
from jsctl.client.system import NoSystemRights, SystemSource
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import save
from jsctl.commands.toolkit.invocation.keys import Keys
from jsctl.commands.toolkit.invocation.watching import repeated
from jsctl.commands.top import SORTS
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.reports.server.top import Rates, top_text

SWITCHES = {"s": "subs", "b": "raw", "d": "lookup"}
FAILED = "initial test request failed"
NO_RIGHTS = (
    "no results received, ensure the account used has system privileges and appropriate permissions"
)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a server told at a time."""

    at_s: float
    varz: Varz
    connz: Connz


class _Watched:
    """One server, and what it told last."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._last: _Look | None = None
        self._hosts: dict[str, str] = {}
        self._sort, self._limit = call.text("sort"), call.integer("conns")
        self._flags = {name: call.flag(name) for name in ("lookup", "raw", "subs")}

    def keys(self) -> Keys:
        """What can be changed while it is watched."""
        return Keys(
            "q leaves, s subs, b bytes, d names, o sort, n limit",
            {key: partial(self._switch, name) for key, name in SWITCHES.items()},
            {"o": ("sort by", self._sorted_by), "n": ("limit", self._limited_to)},
        )

    def _switch(self, name: str) -> None:
        self._flags[name] = not self._flags[name]

    def _sorted_by(self, word: str) -> None:
        if word not in SORTS:
            raise ValueError(f"cannot sort by '{word}'")
        self._sort = word

    def _limited_to(self, text: str) -> None:
        if not is_count(text):
            raise ValueError(f"'{text}' is no number of connections")
        self._limit = int(text)

    async def text(self) -> str:
        """What is shown now; the first time all rates are nothing."""
        call = self._call
        async with call.system() as system:
            look = await self._look(system)
        rates = _rates(self._last, look)
        self._last = look
        hosts = {}
        if self._flags["lookup"]:
            hosts = await self._names(look.connz.connections)
        return top_text(
            look.varz,
            look.connz,
            rates,
            hosts=hosts,
            delimiter=call.text("delimiter"),
            raw=self._flags["raw"],
            subscriptions=self._flags["subs"],
        )

    async def _look(self, system: SystemSource) -> _Look:
        call = self._call
        where = EventFilterOptions(server_name=call.text("name"), exact_match=True)
        wanted = {
            "sort": self._sort,
            "limit": self._limit,
            "subscriptions": self._flags["subs"],
        }
        try:
            varz = await system.gather("VARZ", where=where, expected=1)
            if not varz:
                raise Unreachable(f"{FAILED}: nats: timeout")
            connz = await system.gather("CONNZ", wanted, where=where, expected=1)
        except NoSystemRights:
            raise NoSystemRights(f"{FAILED}: {NO_RIGHTS}") from None
        if not connz:
            raise Unreachable(f"{FAILED}: nats: timeout")
        return _Look(monotonic(), varz[0].as_(Varz), connz[0].as_(Connz))

    async def _names(self, connections: "tuple[ConnInfo, ...]") -> dict[str, str]:
        """Names of addresses; one that has none keeps its address and port."""
        loop = asyncio.get_running_loop()
        for one in connections:
            if one.ip not in self._hosts:
                try:
                    name, _ = await loop.getnameinfo((one.ip, 0), socket.NI_NAMEREQD)
                except OSError:
                    name = f"{one.ip}:{one.port}"
                self._hosts[one.ip] = name
        return self._hosts

    def document(self) -> dict[str, object]:
        """The last look for programs."""
        assert self._last is not None
        return {"varz": encode(self._last.varz), "connz": encode(self._last.connz)}


def _rates(before: _Look | None, now: _Look) -> Rates:
    if before is None or now.at_s <= before.at_s:
        return Rates()
    passed_s = now.at_s - before.at_s
    old, new = before.varz, now.varz
    return Rates(
        (new.in_msgs - old.in_msgs) / passed_s,
        (new.in_bytes - old.in_bytes) / passed_s,
        (new.out_msgs - old.out_msgs) / passed_s,
        (new.out_bytes - old.out_bytes) / passed_s,
    )


async def top(call: Call) -> int:
    """Until Ctrl-C or `q`, so many times, or once into a file."""
    watched = _Watched(call)
    if call.text("output"):
        text = await watched.text()
        _write(call, text)
        return 0
    interval, rounds = max(1, call.integer("interval", 1)), call.integer("max-refresh", -1)

    async def draw(call: Call) -> None:
        text = await watched.text()
        if call.output.machine:
            call.output.json_line(watched.document(), varied=True)
        else:
            call.output.print(text.rstrip("\n"))

    if rounds < 0:
        return await repeated(call, draw, interval, keys=watched.keys())
    async with call.one_connection():
        for number in range(max(1, rounds)):
            if number:
                await asyncio.sleep(interval)
            await draw(call)
            call.output.stdout.flush()
    return 0


def _write(call: Call, text: str) -> None:
    target = call.text("output")
    if target == "-":
        call.output.stdout.write(text)
        return
    try:
        save(Path(target), text)
    except JsctlError as error:
        raise JsctlError(f"failed to open output file '{target}': {error}") from None
