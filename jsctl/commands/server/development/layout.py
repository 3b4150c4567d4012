"""What a local server or cluster is: its accounts, ports, files and contexts.

Three accounts: one to work in, one whose services the first one sees, and that of the system.
Passwords are made once and kept beside the data, so that contexts stay valid from run to run.
"""

import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.auth.store import check_name
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, UsageError
from jsctl.files import make_folder, read_bytes, write_whole
from jsctl.settings import Context, ContextStore

HOST = "127.0.0.1"
ROUTE_OFFSET, MONITOR_OFFSET = 2000, 4000
SERVERS_MAX, PORT_MAX = 9, 65_535
PASSWORD_BYTES = 18
USERS = ("local", "service", "system")
ACCOUNTS = {"local": "USER", "service": "SERVICE", "system": "SYSTEM"}
SUFFIXES = {"local": "", "service": "_service", "system": "_system"}
SERVICES = "service.>"
"""What users of the service account answer on, and users of the other one ask."""
CLUSTER = "DEVELOPMENT"
PASSWORDS = "passwords.json"
"""Where they are kept, beside the configurations."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Layout:
    """One local server, or a cluster of `servers` on ports from `port` on."""

    name: str
    directory: Path
    port: int
    servers: int
    jetstream: bool
    monitor: bool
    passwords: Mapping[str, str]

    @property
    def nodes(self) -> list[str]:
        """n1, n2, ..."""
        return [f"n{number}" for number in range(1, self.servers + 1)]

    @property
    def url(self) -> str:
        """Where clients connect."""
        return ",".join(f"nats://{HOST}:{self.port + at}" for at in range(self.servers))

    @property
    def ports(self) -> list[int]:
        """All that are listened on."""
        offsets = [0]
        offsets += [ROUTE_OFFSET] if self.servers > 1 else []
        offsets += [MONITOR_OFFSET] if self.monitor else []
        return [self.port + offset + at for offset in offsets for at in range(self.servers)]

    def context_of(self, user: str) -> str:
        """The name of a user's context."""
        return self.name + SUFFIXES[user]

    def config_path(self, node: str) -> Path:
        """The configuration file of a server."""
        return self.directory / f"{node}.conf"

    def log_path(self, node: str) -> Path:
        """Where a server logs to."""
        return self.directory / f"{node}.log"

    def configuration(self, at: int) -> str:
        """The configuration of one of the servers."""
        node = self.nodes[at]
        stores = "jetstream: enabled, " if self.jetstream else ""
        lines = [f"server_name: {node}", f'listen: "{HOST}:{self.port + at}"']
        if self.monitor:
            lines.append(f'http: "{HOST}:{self.port + MONITOR_OFFSET + at}"')
        if self.jetstream:
            lines.append(f"jetstream {{ store_dir: {written(str(self.directory / node))} }}")
        if self.servers > 1:
            lines.append(self._cluster(at))
        users = {user: self._users(user) for user in USERS}
        lines += [
            "system_account: SYSTEM",
            "accounts {",
            f"  USER: {{ {stores}{users['local']},",
            f'    imports: [ {{ service: {{ account: SERVICE, subject: "{SERVICES}" }} }} ] }}',
            f"  SERVICE: {{ {stores}{users['service']},",
            f'    exports: [ {{ service: "{SERVICES}" }} ] }}',
            f"  SYSTEM: {{ {users['system']} }}",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _users(self, user: str) -> str:
        return f"users: [ {{ user: {user}, password: {written(self.passwords[user])} }} ]"

    def _cluster(self, at: int) -> str:
        ports = [self.port + ROUTE_OFFSET + number for number in range(self.servers)]
        routes = ", ".join(f'"nats://{HOST}:{port}"' for port in ports)
        listen = f'listen: "{HOST}:{ports[at]}"'
        return f"cluster {{ name: {CLUSTER}, {listen}, routes: [ {routes} ] }}"

    def write(self) -> None:
        """The passwords and configurations; only their owner may read them. Raises JsctlError.

        What no configuration may have is refused before anything is written.
        """
        files = {self.directory / PASSWORDS: json.dumps(dict(self.passwords), indent=2) + "\n"}
        for at, node in enumerate(self.nodes):
            files[self.config_path(node)] = self.configuration(at)
        make_folder(self.directory)
        for path, text in files.items():
            write_whole(path, text)

    def store_contexts(self, store: ContextStore) -> None:
        """A context for each user."""
        for user in USERS:
            about = f"Local development server {self.name}, account {ACCOUNTS[user]}"
            password = self.passwords[user]
            context = Context(description=about, url=self.url, user=user, password=password)
            store.save(self.context_of(user), context)

    def remove_contexts(self, store: ContextStore) -> None:
        """Takes the contexts away again; a selected one is unselected."""
        for user in USERS:
            name = self.context_of(user)
            if store.exists(name):
                if store.selected() == name:
                    store.select("")
                store.remove(name)


def written(text: str) -> str:
    """A text as configuration files take it: they know fewer escapes than JSON.

    Raises UsageError for one that is no UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} is no text that a configuration may have") from None
    plain = text.translate({ord(mark): f"\\{mark}" for mark in '\\"'})
    return '"' + _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", plain) + '"'


def home_of(environ: Mapping[str, str], name: str) -> Path:
    """Where a local server keeps its files unless it is told."""
    given = environ.get("XDG_DATA_HOME")
    data = Path(given) if given else Path.home() / ".local" / "share"
    return data / "jsctl" / "run" / check_name(name, "server")


def passwords_of(directory: Path | None) -> dict[str, str]:
    """Those of the last run in a directory, or new ones. Raises JsctlError for a broken file."""
    path = directory / PASSWORDS if directory else None
    found: dict[str, object] = {}
    if path is not None and path.exists():
        try:
            found = jsontext.parse_object(read_bytes(path))
        except DecodeError as error:
            raise JsctlError(f"{path}: {error}") from None
    return {
        user: known
        if isinstance(known := found.get(user), str) and known
        else secrets.token_urlsafe(PASSWORD_BYTES)
        for user in USERS
    }
