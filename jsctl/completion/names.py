"""Names that servers know: streams, consumers, buckets, keys, servers, subjects, accounts.

Asked for with a short deadline and kept for some seconds, a file for each account; if nobody
answers, what was known last is offered. Names of contexts come from their directory.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time_ns

from jsctl.api.times import SECOND_NS
from jsctl.completion.quick import QuickClient
from jsctl.errors import JsctlError
from jsctl.settings import ContextStore, Settings, load

FRESH_S = 10.0
PATIENCE_S = 0.4
NAMES_MAX = 2000
KEPT_MAX = 100
"""Lists in one file; the oldest goes first."""
Names = list[tuple[str, str]]
Values = Mapping[str, str]


def known_names(
    kind: str, values: Values, flags: dict[str, str], environ: Mapping[str, str]
) -> Names:
    """Names of a kind; `values` are arguments and options given before. Empty if unknown."""
    if kind == "context":
        store = ContextStore.default(environ)
        selected = store.selected()
        return [(name, "selected" if name == selected else "") for name in store.names()]
    ask = _ASKED.get(kind)
    if ask is None:
        return []
    try:
        settings = load(flags, environ)
    except JsctlError:
        return []
    key = json.dumps([kind, values.get("stream", ""), values.get("bucket", "")])
    kept = _Kept(settings, environ)
    fresh, names = kept.get(key)
    if fresh:
        return names
    try:
        with QuickClient(settings, PATIENCE_S) as client:
            found = ask(_Api(client, settings), values)[:NAMES_MAX]
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        JsctlError,
    ):
        return names
    kept.put(key, found)
    return found


class _Api:
    """Documents of the JetStream API and of servers."""

    def __init__(self, client: QuickClient, settings: Settings) -> None:
        self._client = client
        connection = settings.connection
        prefix = connection.jetstream_api_prefix.rstrip(".")
        domain = connection.jetstream_domain
        self._prefix = prefix or (f"$JS.{domain}.API" if domain else "$JS.API")

    def jetstream(self, words: str, body: Mapping[str, object] | None = None) -> dict[str, object]:
        """One answer; an error answer has nothing that anybody looks for."""
        payload = json.dumps(body).encode() if body else b""
        found = json.loads(self._client.request(f"{self._prefix}.{words}", payload))
        return found if isinstance(found, dict) else {}

    def server(self, words: str, body: Mapping[str, object] | None = None) -> dict[str, object]:
        """One server's answer."""
        payload = json.dumps(body).encode() if body else b""
        found = json.loads(self._client.request(f"$SYS.REQ.SERVER.{words}", payload))
        return found if isinstance(found, dict) else {}


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _streams(api: _Api, values: Values) -> Names:
    del values
    return [(name, "") for name in _texts(api.jetstream("STREAM.NAMES").get("streams"))]


def _buckets(prefix: str) -> Callable[[_Api, Values], Names]:
    def buckets(api: _Api, values: Values) -> Names:
        names = (name for name, _ in _streams(api, values))
        return [(name.removeprefix(prefix), "") for name in names if name.startswith(prefix)]

    return buckets


def _consumers(api: _Api, values: Values) -> Names:
    found = api.jetstream(f"CONSUMER.NAMES.{values['stream']}")
    return [(name, "") for name in _texts(found.get("consumers"))]


def _held(api: _Api, stream: str, subject: str) -> list[str]:
    """Subjects of which a stream holds messages."""
    found = api.jetstream(f"STREAM.INFO.{stream}", {"subjects_filter": subject})
    state = found.get("state")
    subjects = state.get("subjects") if isinstance(state, dict) else None
    return sorted(subjects) if isinstance(subjects, dict) else []


def _keys(api: _Api, values: Values) -> Names:
    bucket = values["bucket"]
    start = f"$KV.{bucket}."
    return [(one.removeprefix(start), "") for one in _held(api, f"KV_{bucket}", f"{start}>")]


def _infos(api: _Api) -> list[dict[str, object]]:
    found = api.jetstream("STREAM.LIST").get("streams")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _subjects(api: _Api, values: Values) -> Names:
    if values.get("stream"):
        return [(one, "") for one in _held(api, values["stream"], ">")]
    found: dict[str, str] = {}
    for info in _infos(api):
        config = info.get("config")
        if isinstance(config, dict):
            for subject in _texts(config.get("subjects")):
                found.setdefault(subject, f"stream {config.get('name')}")
    return sorted(found.items())


def _groups(api: _Api) -> list[dict[str, object]]:
    groups = (info.get("cluster") for info in _infos(api))
    return [group for group in groups if isinstance(group, dict)]


def _servers(api: _Api, values: Values) -> Names:
    """Those of the meta group for the system account, else those that streams tell of."""
    del values
    try:
        document = api.server("PING.JSZ", {"leader_only": True})
        data = document.get("data")
        meta = data.get("meta_cluster") if isinstance(data, dict) else None
        groups = [meta] if isinstance(meta, dict) else []
    except JsctlError:
        groups = _groups(api)
    names: set[str] = set()
    for group in groups:
        names.add(str(group.get("leader", "")))
        replicas = group.get("replicas")
        for peer in replicas if isinstance(replicas, list) else []:
            names.add(str(peer.get("name", "")))
    return [(name, "") for name in sorted(names - {""})]


def _clusters(api: _Api, values: Values) -> Names:
    del values
    return [(name, "") for name in sorted({str(one.get("name", "")) for one in _groups(api)})]


def _accounts(api: _Api, values: Values) -> Names:
    del values
    data = api.server("PING.ACCOUNTZ").get("data")
    return [(name, "") for name in _texts(data.get("accounts") if isinstance(data, dict) else None)]


_ASKED: Mapping[str, Callable[[_Api, Values], Names]] = {
    "stream": _streams,
    "consumer": _consumers,
    "bucket": _buckets("KV_"),
    "object-bucket": _buckets("OBJ_"),
    "key": _keys,
    "subject": _subjects,
    "server": _servers,
    "cluster": _clusters,
    "account": _accounts,
}


def _now() -> float:
    return time_ns() / SECOND_NS


class _Kept:
    """Lists with the time when they were asked for; none of it is a secret but for its owner."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        root = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "/")) / ".cache")
        connection = settings.connection
        login = (connection.user, connection.token, connection.creds, connection.user_jwt)
        who = (settings.context_name, *settings.urls, *login)
        domain = (connection.jetstream_domain, connection.jetstream_api_prefix, connection.nkey)
        name = hashlib.sha256("\0".join((*who, *domain)).encode()).hexdigest()[:24]
        self._path = Path(root) / "jsctl" / f"complete-{name}.json"

    def get(self, key: str) -> tuple[bool, Names]:
        """Whether it is fresh, and the names; none if there are none."""
        when, names = self._read().get(key, (0.0, []))
        return 0 <= _now() - when < FRESH_S, [(name, text) for name, text in names]

    def put(self, key: str, names: Names) -> None:
        """For the next keys; where nothing can be written nothing is kept."""
        lists = self._read()
        lists[key] = (_now(), names)
        newest = sorted(lists.items(), key=lambda item: item[1][0])[-KEPT_MAX:]
        made = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made.touch(mode=0o600)
            made.write_text(json.dumps(dict(newest)), encoding="utf-8")
            made.replace(self._path)
        except OSError:
            made.unlink(missing_ok=True)

    def _read(self) -> dict[str, tuple[float, Names]]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            return {
                str(key): (float(when), [(str(name), str(text)) for name, text in names])
                for key, (when, names) in found.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
