"""How to reach a server: contexts, environment and flags -> one frozen `Settings`.

A flag beats the environment, which beats the context's file. Files and names are those of the
`nats` tool, so both tools share their contexts. Nothing is read before `load` is called.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path

from jsctl.api.times import SECOND_NS, format_duration, parse_duration
from jsctl.dataclass import dataclass
from jsctl.errors import NotFound, UsageError
from jsctl.files import write_whole

DEFAULT_URL = "nats://127.0.0.1:4222"
TIMEOUT_NS = 5 * SECOND_NS
COLORS = ("blue", "cyan", "double", "green", "magenta", "red", "rounded", "yellow")


@dataclass(frozen=True, slots=True)
class GlobalFlag:
    """A flag accepted before or after any command.

    `key` is the field of `Settings` it sets and `env` its environment variable. `metavar` is
    empty for switches; `negative` adds the `--no-` form.
    """

    name: str
    key: str
    help: str
    metavar: str = ""
    short: str = ""
    env: str = ""
    negative: bool = False
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


GLOBAL_FLAGS = (
    GlobalFlag("server", "url", "NATS server urls", "URL", "s", "NATS_URL"),
    GlobalFlag("user", "user", "Username or Token", "USER", env="NATS_USER"),
    GlobalFlag("password", "password", "Password", "PASSWORD", env="NATS_PASSWORD"),
    GlobalFlag("token", "token", "Token", "TOKEN", env="NATS_TOKEN"),
    GlobalFlag(
        "connection-name",
        "connection_name",
        "Nickname to use for the underlying NATS Connection",
        "NAME",
    ),
    GlobalFlag("creds", "creds", "User credentials", "FILE", env="NATS_CREDS"),
    GlobalFlag("nkey", "nkey", "User NKEY", "FILE", env="NATS_NKEY"),
    GlobalFlag("jwt", "user_jwt", "User JWT", "JWT", env="NATS_JWT"),
    GlobalFlag("seed", "user_seed", "User seed", "SEED", env="NATS_SEED"),
    GlobalFlag("tlscert", "cert", "TLS public certificate", "FILE", env="NATS_CERT"),
    GlobalFlag("tlskey", "key", "TLS private key", "FILE", env="NATS_KEY"),
    GlobalFlag("tlsca", "ca", "TLS certificate authority chain", "FILE", env="NATS_CA"),
    GlobalFlag(
        "tlsfirst",
        "tls_first",
        "Perform TLS handshake before expecting the server greeting",
        negative=True,
        aliases=("tls-first",),
    ),
    GlobalFlag(
        "timeout", "timeout", "Time to wait on responses from NATS", "5s", "", "NATS_TIMEOUT"
    ),
    GlobalFlag(
        "socks-proxy",
        "socks_proxy",
        "SOCKS5 proxy for connecting to NATS server",
        "PROXY",
        env="NATS_SOCKS_PROXY",
    ),
    GlobalFlag(
        "js-api-prefix",
        "jetstream_api_prefix",
        "Subject prefix for access to JetStream API",
        "PREFIX",
    ),
    GlobalFlag(
        "js-event-prefix",
        "jetstream_event_prefix",
        "Subject prefix for access to JetStream Advisories",
        "PREFIX",
    ),
    GlobalFlag(
        "js-domain", "jetstream_domain", "JetStream domain to access", "DOMAIN", aliases=("domain",)
    ),
    GlobalFlag("inbox-prefix", "inbox_prefix", "Custom inbox prefix to use for inboxes", "PREFIX"),
    GlobalFlag(
        "colors",
        "color_scheme",
        "Sets a color scheme to use",
        "SCHEME",
        "",
        "NATS_COLOR",
        choices=COLORS,
    ),
    GlobalFlag("context", "context", "Configuration context", "NAME", env="NATS_CONTEXT"),
    GlobalFlag("trace", "trace", "Trace API interactions"),
    GlobalFlag("no-context", "no_context", "Disable the selected context"),
    GlobalFlag(
        "monitor",
        "monitor",
        "Monitoring port of a server, instead of a connection; may be repeated",
        "URL",
        env="JSCTL_MONITOR",
    ),
    GlobalFlag(
        "render",
        "render",
        "Print as table, json, jsonl, yaml, csv, tsv, md or names; also -o and --output",
        "FORMAT",
        env="JSCTL_FORMAT",
        choices=("table", "json", "jsonl", "yaml", "csv", "tsv", "md", "names"),
    ),
)


@dataclass(frozen=True, slots=True)
class Context:
    """A stored context; the fields are the keys of its file, all of which are written."""

    description: str = ""
    url: str = ""
    socks_proxy: str = ""
    token: str = ""
    user: str = ""
    password: str = ""
    creds: str = ""
    nkey: str = ""
    cert: str = ""
    key: str = ""
    ca: str = ""
    jetstream_domain: str = ""
    jetstream_api_prefix: str = ""
    jetstream_event_prefix: str = ""
    inbox_prefix: str = ""
    user_jwt: str = ""
    user_seed: str = ""
    color_scheme: str = ""
    tls_first: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)
    """Keys of newer versions and other platforms, written back unchanged."""


CONTEXT_KEYS = tuple(f.name for f in fields(Context) if f.name != "extra")
FOREIGN_KEYS: Mapping[str, object] = {
    "nsc": "",
    "windows_cert_store": "",
    "windows_cert_match_by": "",
    "windows_cert_match": "",
    "windows_ca_certs_match": None,
}
"""Keys that mean nothing here, with what the `nats` tool writes for them."""
_KEYS = {key: key for key in (*CONTEXT_KEYS, *FOREIGN_KEYS, "name")}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a connection needs. `timeout_ns` bounds each request."""

    connection: Context = Context(url=DEFAULT_URL)
    context_name: str = ""
    connection_name: str = ""
    timeout_ns: int = TIMEOUT_NS
    trace: bool = False
    monitor: tuple[str, ...] = ()
    render: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    """Flags and environment as they were given, by key; contexts are stored from them."""

    @property
    def urls(self) -> list[str]:
        """The servers to try."""
        return [url.strip() for url in self.connection.url.split(",") if url.strip()]

    @property
    def timeout(self) -> float:
        """`timeout_ns` in seconds, as clients want it."""
        return self.timeout_ns / SECOND_NS


def check_context_name(name: str) -> str:
    """The name if it can be a file's name; raises UsageError."""
    for mark, told in (("..", '".."'), ("/", '"/" or "\\"'), ("\\", '"/" or "\\"')):
        if mark in name:
            raise UsageError(f'invalid context name: "{name}" must not contain {told}')
    if not name:
        raise UsageError("invalid context name: name is empty")
    return name


class ContextStore:
    """The directory that keeps contexts: `context/<name>.json`, `context.txt`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def default(cls, environ: Mapping[str, str]) -> "ContextStore":
        """Where the `nats` tool keeps them."""
        home = environ.get("XDG_CONFIG_HOME")
        return cls((Path(home) if home else Path.home() / ".config") / "nats")

    def path(self, name: str) -> Path:
        """The file of a context."""
        return self.root / "context" / (check_context_name(name) + ".json")

    def names(self) -> list[str]:
        """All stored contexts, sorted. Raises UsageError where there can be none."""
        folder = self.root / "context"
        try:
            files = list(folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"open {folder}: {str(error.strerror).lower()}") from None
        return sorted(path.stem for path in files if path.suffix == ".json")

    def exists(self, name: str) -> bool:
        """Whether a context of that name is stored."""
        return self.path(name).exists()

    def load(self, name: str) -> Context:
        """A stored context; raises NotFound."""
        try:
            return load_context_file(self.path(name))
        except FileNotFoundError:
            from difflib import get_close_matches

            names = self.names()
            near = get_close_matches(name, names, 3)
            meant = [f"did you mean {', '.join(near)}?"] if near else []
            hints = (*meant, f"known: {', '.join(names) or 'none'}")
            raise NotFound(f'context not found: "{name}"', hints=hints) from None

    def save(self, name: str, context: Context) -> None:
        """Writes a context; only the owner may read it."""
        document: dict[str, object] = {key: getattr(context, key) for key in CONTEXT_KEYS}
        document.update({**FOREIGN_KEYS, **context.extra})
        self._write(self.path(name), json.dumps(document, indent=2))

    def remove(self, name: str) -> None:
        """Deletes a context; raises NotFound."""
        if not self.exists(name):
            self.load(name)
        self.path(name).unlink()

    def selected(self) -> str:
        """The name of the selected context, or empty."""
        return self._read("context.txt")

    def previous(self) -> str:
        """The name of the context selected before, or empty."""
        return self._read("previous-context.txt")

    def select(self, name: str) -> None:
        """Makes a context the default; an empty name unselects."""
        if name:
            self.load(name)
        before = self.selected()
        if before:
            self._write(self.root / "previous-context.txt", before)
        self._write(self.root / "context.txt", name)

    def _read(self, file: str) -> str:
        try:
            return (self.root / file).read_text(encoding="utf-8").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except UnicodeDecodeError:
            raise UsageError(f"{self.root / file} does not hold the name of a context") from None

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, text)


def load_context_file(path: Path) -> Context:
    """A context from a file; raises FileNotFoundError or UsageError for broken JSON."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read context file {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"context file {path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise UsageError(f"context file {path} is not a JSON object")
    # The `nats` tool takes keys in any case, as what reads JSON in Go does.
    document = {_KEYS.get(key.lower(), key): value for key, value in document.items()}
    for key in CONTEXT_KEYS:
        kind = bool if key == "tls_first" else str
        if document.get(key) is None:
            document.pop(key, None)
        elif not isinstance(document[key], kind):
            word = "true or false" if kind is bool else "a text"
            raise UsageError(f'context file {path}: "{key}" must be {word}')
    nsc = document.pop("nsc", "")
    if nsc and not document.get("creds"):
        document["creds"] = nsc
    known = {key: document.pop(key) for key in CONTEXT_KEYS if key in document}
    document.pop("name", None)
    extra = {key: value for key, value in document.items() if FOREIGN_KEYS.get(key, key) != value}
    return Context(**known, extra=extra)


def load(
    flags: Mapping[str, str], environ: Mapping[str, str], *, use_context: bool = True
) -> Settings:
    """Settings of this run; `flags` holds the global flags given, by their key.

    Raises NotFound for an unknown context and UsageError for bad values.
    """
    given = {f.key: environ[f.env] for f in GLOBAL_FLAGS if f.env and environ.get(f.env)}
    given.update(flags)
    name, context = "", Context()
    if use_context and not given.get("no_context"):
        name, context = _chosen_context(given.get("context", ""), environ)
    context = _without_beaten_logins(context, environ, flags)
    given = {key: value for key, value in given.items() if not _beaten(key, flags)}
    overrides: dict[str, object] = {key: given[key] for key in CONTEXT_KEYS if given.get(key)}
    if "tls_first" in given:
        overrides["tls_first"] = given["tls_first"] not in ("", "false", "0")
    if overrides.get("socks_proxy") in ("none", "-"):
        overrides["socks_proxy"] = ""
    context = replace(context, **overrides)  # type: ignore[arg-type] # keys are field names
    if not context.url:
        context = replace(context, url=DEFAULT_URL)
    return Settings(
        connection=_expanded(context, environ),
        context_name=name,
        connection_name=given.get("connection_name", ""),
        timeout_ns=_timeout(given.get("timeout", "")),
        trace=bool(given.get("trace")),
        monitor=tuple(url for url in given.get("monitor", "").split(",") if url),
        render=given.get("render", ""),
        given=given,
    )


_LOGINS = ("user", "password", "token", "creds", "nkey", "user_jwt", "user_seed")
"""Who a connection is: parts from different places do not make one identity."""


def _beaten(key: str, flags: Mapping[str, str]) -> bool:
    """Whether flags name somebody else, so that the environment's login is not meant."""
    named = [one for one in _LOGINS if flags.get(one)]
    if key not in _LOGINS or key in flags or not named:
        return False
    return not _completes(key, named)


def _without_beaten_logins(
    context: Context, environ: Mapping[str, str], flags: Mapping[str, str]
) -> Context:
    """The context, without its login when flags or the environment name another one."""
    told = [f.key for f in GLOBAL_FLAGS if f.env and environ.get(f.env)]
    named = [key for key in _LOGINS if flags.get(key) or key in told]
    if not named:
        return context
    gone = {key: "" for key in _LOGINS if not _completes(key, named)}
    return replace(context, **gone)  # type: ignore[arg-type] # keys are text fields


def _completes(key: str, named: Sequence[str]) -> bool:
    """Whether a part of a login belongs to the parts that were named: to its other half."""
    halves = {"password": "user", "user": "password", "user_seed": "user_jwt"}
    halves["user_jwt"] = "user_seed"
    return all(one in (key, halves.get(key)) for one in named)


def _chosen_context(wanted: str, environ: Mapping[str, str]) -> tuple[str, Context]:
    if wanted.endswith(".json") and Path(wanted).exists():
        return Path(wanted).stem, load_context_file(Path(wanted))
    store = ContextStore.default(environ)
    name = wanted or store.selected()
    if not name:
        return "", Context()
    if not wanted and not store.exists(name):
        store.select("")
        raise NotFound(
            "context not found",
            hints=(f'The selected context "{name}" was not found, unselecting it',),
        )
    return name, store.load(name)


def _timeout(text: str) -> int:
    if not text:
        return TIMEOUT_NS
    try:
        timeout_ns = parse_duration(text.strip())
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from None
    if timeout_ns <= 0:
        raise UsageError(f"--timeout must be positive, got {format_duration(timeout_ns)}")
    return timeout_ns


def _expanded(context: Context, environ: Mapping[str, str]) -> Context:
    paths = {
        key: str(Path(os.path.expandvars(value)).expanduser())
        for key in ("creds", "nkey", "cert", "key", "ca")
        if (value := str(getattr(context, key))) and "://" not in value
    }
    return replace(context, **paths)  # type: ignore[arg-type] # keys are text fields
