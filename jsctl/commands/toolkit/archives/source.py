"""What servers told when an audit was gathered, as if they were asked now.

An archive has what `audit gather` asked for and nothing else: a request that wants less gets more
than from a server, and one that wants something else is refused.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jsctl.api.codec import decode
from jsctl.api.errors import ApiError
from jsctl.api.server import EventFilterOptions, ServerInfo
from jsctl.client.system import ANYWHERE, SystemReply, chosen
from jsctl.commands.toolkit.archives.files import UNCLUSTERED, Document, Reader
from jsctl.errors import UsageError

PROFILES = "profile"
_KINDS: Mapping[str, str] = {
    "": "variables",
    "VARZ": "variables",
    "ROUTEZ": "routes",
    "GATEWAYZ": "gateways",
    "LEAFZ": "leafs",
    "SUBSZ": "subs",
    "JSZ": "jetstream_info",
    "HEALTHZ": "health",
    "ACCOUNTZ": "accounts",
    "CONNZ": "account_connections",
    "RAFTZ": "account_raftz",
    "IPQUEUESZ": "account_ipqueues",
}
_PAGES = {"SUBSZ": "subscriptions_list", "JSZ": "account_details", "CONNZ": "connections"}
"""Kinds with several documents of a server, and the list that is joined."""
_UNSUPPORTED: Mapping[str, tuple[str, ...]] = {
    "CONNZ": ("acc", "filter_subject", "user", "state"),
    "GATEWAYZ": ("name",),
    "LEAFZ": ("account",),
    "JSZ": ("account",),
    "HEALTHZ": ("js-enabled-only", "js-server-only", "account", "stream", "consumer"),
}
_SPELLED = {"acc": "account"}
_SAME_IN_STATSZ = (
    *("start", "mem", "cores", "cpu", "connections", "total_connections", "subscriptions"),
    *("slow_consumers", "slow_consumer_stats", "gomemlimit", "gomaxprocs"),
)


class ArchiveSystem:
    """An archive as a source of facts about servers."""

    def __init__(self, path: Path, reader: Reader) -> None:
        self.path = path
        self._reader = reader

    async def gather(
        self,
        kind: str,
        options: Mapping[str, object] | None = None,
        *,
        where: EventFilterOptions = ANYWHERE,
        expected: int = 0,
        server_id: str = "",
    ) -> list[SystemReply]:
        """See `SystemSource`. Raises UsageError for options that an archive cannot answer."""
        given = options or {}
        strange = [_SPELLED.get(key, key) for key in _UNSUPPORTED.get(kind, ()) if given.get(key)]
        if strange:
            words = ", ".join(strange)
            raise UsageError(f"unsupported option for archive {kind.lower()}: {words}")
        found = [
            reply
            for reply in map(_reply, self._documents(kind, given))
            if (not server_id or reply.server.id == server_id) and chosen(reply.server, where)
        ]
        return found[:expected] if expected and kind in ("ACCOUNTZ", "VARZ") else found

    def profiles(self, name: str, level: int, where: EventFilterOptions) -> list[SystemReply]:
        """The profiles of servers that were gathered at this level."""
        import base64

        servers = {(one["server"], one["cluster"]): one for one in self._server_tags()}
        found: list[SystemReply] = []
        for tags, content in self._reader.contents(artifact_type=PROFILES):
            kind, _, debug = tags.get("profile_name", "").partition("_")
            if (kind, int(debug) if debug.isdigit() else 0) != (name, level):
                continue
            cluster = tags.get("cluster", "")
            told = servers.get((tags.get("server", ""), cluster), {})
            server = ServerInfo(
                name=tags.get("server", ""),
                cluster="" if cluster == UNCLUSTERED else cluster,
                id=told.get("id", ""),
            )
            if chosen(server, where):
                data: Document = {"profile": base64.b64encode(content).decode()}
                found.append(SystemReply(server, data))
        return found

    def _server_tags(self) -> Iterator[dict[str, str]]:
        for document in self._reader.each(artifact_type="variables"):
            server = _part(document, "server")
            cluster = str(server.get("cluster") or UNCLUSTERED)
            name, number = str(server.get("name")), str(server.get("id", ""))
            yield {"server": name, "cluster": cluster, "id": number}

    def _documents(self, kind: str, options: Mapping[str, object]) -> Iterator[Document]:
        account = options.get("account")
        if kind == "ACCOUNTZ" and isinstance(account, str) and account:
            for one in self._reader.each(artifact_type="account_info", account=account):
                yield {**one, "data": {"account_detail": one.get("data")}}
        elif kind in _PAGES:
            yield from self._joined(kind, options)
        elif kind == "":
            yield from map(self._statsz, self._reader.each(artifact_type=_KINDS[kind]))
        else:
            narrowed = _NARROWED.get(kind, _as_it_is)
            for one in self._reader.each(artifact_type=_KINDS[kind]):
                yield narrowed(one, options)

    def _joined(self, kind: str, options: Mapping[str, object]) -> Iterator[Document]:
        """One document of each server, with everything on the first page and nothing behind it."""
        by_server: dict[str, Document] = {}
        key = _PAGES[kind]
        for tags, one in self._reader.tagged(artifact_type=_KINDS[kind]):
            data, server = _part(one, "data"), str(_part(one, "server").get("id"))
            rows = data.get(key)
            rows = list(rows) if isinstance(rows, list) else []
            for row in rows:
                if kind == "CONNZ" and isinstance(row, dict) and not row.get("account"):
                    row["account"] = tags.get("account", "")
            known = by_server.setdefault(server, {**one, "data": {**data, key: []}})
            joined = _part(known, "data")[key]
            assert isinstance(joined, list)
            joined += rows
        for one in by_server.values():
            data = _part(one, "data")
            joined = data[key]
            assert isinstance(joined, list)
            if kind == "CONNZ":
                data |= {"num_connections": len(joined), "total": len(joined), "offset": 0}
                data["limit"] = max(len(joined), _number(data, "limit"))
            if options.get("offset"):
                joined.clear()
            yield one

    def _statsz(self, document: Document) -> Document:
        """VARZ, with routes and gateways, in the shape of STATSZ."""
        data, server = _part(document, "data"), _part(document, "server")
        stats: Document = {key: data[key] for key in _SAME_IN_STATSZ if key in data}
        stats["sent"] = {"msgs": data.get("out_msgs", 0), "bytes": data.get("out_bytes", 0)}
        stats["received"] = {"msgs": data.get("in_msgs", 0), "bytes": data.get("in_bytes", 0)}
        jetstream = _part(data, "jetstream")
        if jetstream.get("config"):
            stats["jetstream"] = jetstream
        stats["routes"] = [
            {"rid": one.get("rid", 0), "name": one.get("remote_name", ""), **_traffic(one)}
            for one in self._rows("routes", server, "routes")
        ]
        stats["gateways"] = list(self._gateways(server))
        return {"server": server, "statsz": stats}

    def _rows(self, kind: str, server: Document, key: str) -> Iterator[Document]:
        for one in self._reader.each(artifact_type=kind):
            if _part(one, "server").get("id") == server.get("id"):
                rows = _part(one, "data").get(key)
                yield from (row for row in (rows if isinstance(rows, list) else []))

    def _gateways(self, server: Document) -> Iterator[Document]:
        for one in self._reader.each(artifact_type="gateways"):
            if _part(one, "server").get("id") != server.get("id"):
                continue
            data = _part(one, "data")
            outbound, inbound = (_part(data, f"{way}_gateways") for way in ("outbound", "inbound"))
            for name in sorted({*outbound, *inbound}):
                ends = inbound.get(name)
                ends = ends if isinstance(ends, list) else []
                sent = _traffic(_part(_part(outbound, name), "connection"))["sent"]
                took = [_part(end, "connection") for end in ends if isinstance(end, dict)]
                received = {
                    "msgs": sum(_number(one, "in_msgs") for one in took),
                    "bytes": sum(_number(one, "in_bytes") for one in took),
                }
                counts = {"sent": sent, "received": received, "inbound_connections": len(ends)}
                yield {"name": name, **counts}


@contextmanager
def open_archive(path: Path) -> Iterator[ArchiveSystem]:
    """Raises UsageError when it is none."""
    reader = Reader(path)
    try:
        yield ArchiveSystem(path, reader)
    finally:
        reader.close()


def _reply(document: Document) -> SystemReply:
    server = decode(ServerInfo, _part(document, "server"))
    problem = _part(document, "error")
    error = None
    if problem:
        error = ApiError(_number(problem, "code"), 0, str(problem.get("description", problem)))
    data = _part(document, "data") or _part(document, "statsz")
    return SystemReply(server, data, error, 0, document)


def _ipqueues(document: Document, options: Mapping[str, object]) -> Document:
    """Only queues with something in them, unless all are wanted; only those with the word."""
    word = str(options.get("filter") or "")
    kept = {
        name: queue
        for name, queue in _part(document, "data").items()
        if word in name and (options.get("all") or _busy(queue))
    }
    return {**document, "data": kept}


def _busy(queue: object) -> bool:
    return isinstance(queue, dict) and bool(queue.get("pending") or queue.get("in_progress"))


def _raft(document: Document, options: Mapping[str, object]) -> Document:
    account, group = str(options.get("account") or ""), str(options.get("group") or "")
    kept: Document = {}
    for name, groups in _part(document, "data").items():
        if account not in ("", name) or not isinstance(groups, dict):
            continue
        found = {key: one for key, one in groups.items() if group in ("", key)}
        if found or not group:
            kept[name] = found
    return {**document, "data": kept}


def _as_it_is(document: Document, _options: Mapping[str, object]) -> Document:
    return document


_NARROWED: Mapping[str, Callable[[Document, Mapping[str, object]], Document]] = {
    "IPQUEUESZ": _ipqueues,
    "RAFTZ": _raft,
}


def _part(document: Mapping[str, object], key: str) -> Document:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _number(document: Mapping[str, object], key: str) -> int:
    found = document.get(key)
    return found if isinstance(found, int) else 0


def _traffic(end: Mapping[str, object]) -> dict[str, dict[str, int]]:
    return {
        "sent": {"msgs": _number(end, "out_msgs"), "bytes": _number(end, "out_bytes")},
        "received": {"msgs": _number(end, "in_msgs"), "bytes": _number(end, "in_bytes")},
    }
