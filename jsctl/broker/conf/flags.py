"""The command line of nats-server: one table for parsing, meaning and help text.

Flags follow Go's rules: one or two dashes are the same, `-x v` and `-x=v` too, a value is taken
as it stands (so `-p -1` works), booleans take a value only after `=`, and parsing stops at the
first word that is no flag. A flag wins over the configuration file.
"""

from collections.abc import Sequence
from dataclasses import field

from jsctl.broker.errors import ConfigError
from jsctl.dataclass import dataclass

TRUE_WORDS = ("1", "t", "T", "true", "TRUE", "True")
HELP_COLUMN = 36
FALSE_WORDS = ("0", "f", "F", "false", "FALSE", "False")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `kind` is text, number, or switch (a boolean)."""

    key: str
    names: tuple[str, ...]
    kind: str
    shown: str
    """Its left column in the help text."""
    help: str


@dataclass(slots=True)
class Parsed:
    """A command line: values by flag key and the words behind the flags."""

    values: dict[str, str | int | bool] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def text(self, key: str) -> str | None:
        """The text given for a flag, None if it was not given."""
        value = self.values.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | None:
        """The number given for a flag, None if it was not given."""
        value = self.values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def switch(self, key: str) -> bool | None:
        """The boolean given for a flag, None if it was not given."""
        value = self.values.get(key)
        return value if isinstance(value, bool) else None


class UsageError(ConfigError):
    """The command line itself cannot be read; the help text goes with the message."""


def parse_flags(arguments: Sequence[str]) -> Parsed:
    """Read a command line. Raises UsageError in the words of Go's flag package."""
    parsed = Parsed()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            parsed.words = rest
            break
        if len(word) < 2 or not word.startswith("-"):
            parsed.words = [word, *rest]
            break
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        if not name or name.startswith("-"):
            raise UsageError(f"bad flag syntax: {word}")
        flag = BY_NAME.get(name)
        if flag is None:
            raise UsageError(f"flag provided but not defined: -{name}")
        given = value if equals else None
        if given is None and flag.kind != "switch":
            if not rest:
                raise UsageError(f"flag needs an argument: -{name}")
            given = rest.pop(0)
        parsed.values[flag.key] = convert(flag, name, given)
    return parsed


def convert(flag: Flag, name: str, given: str | None) -> str | int | bool:
    """The value of a flag. Raises UsageError for one of the wrong kind."""
    if flag.kind == "switch":
        if given is None or given in TRUE_WORDS:
            return True
        if given in FALSE_WORDS:
            return False
        raise UsageError(f'invalid boolean value "{given}" for -{name}: parse error')
    assert given is not None
    if flag.kind == "text":
        return given
    digits = given[1:] if given[:1] in ("-", "+") else given
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise UsageError(f'invalid value "{given}" for flag -{name}: parse error')
    return int(given)


def help_text(program: str) -> str:
    """All flags, grouped as operators know them."""
    lines = [f"Usage: {program} [options]", ""]
    for title, flags in GROUPS:
        lines.append(f"{title}:")
        for flag in flags:
            first, *more = flag.help.split("\n")
            lines.append(f"    {flag.shown:<{HELP_COLUMN}}{first}")
            lines += [" " * (HELP_COLUMN + 4) + line for line in more]
        lines.append("")
    return "\n".join(lines)


SERVER = (
    Flag("host", ("a", "addr", "net"), "text", "-a, --addr, --net <host>",
         "Bind to host address (default: 0.0.0.0)"),
    Flag("port", ("p", "port"), "number", "-p, --port <port>",
         "Use port for clients (default: 4222; -1: any)"),
    Flag("name", ("n", "name", "server_name"), "text", "-n, --name, --server_name <name>",
         "Server name (default: auto)"),
    Flag("pid", ("P", "pid"), "text", "-P, --pid <file>", "File to store PID"),
    Flag("http_port", ("m", "http_port"), "number", "-m, --http_port <port>",
         "Use port for http monitoring"),
    Flag("https_port", ("ms", "https_port"), "number", "-ms,--https_port <port>",
         "Use port for https monitoring"),
    Flag("config", ("c", "config"), "text", "-c, --config <file>", "Configuration file"),
    Flag("test", ("t",), "switch", "-t", "Test configuration and exit"),
    Flag("signal", ("sl", "signal"), "text", "-sl,--signal <signal>[=<pid>]",
         "Send signal to a server process (ldm, stop, quit, term, reopen, reload)\n"
         "<pid> can be either a PID (e.g. 1) or the path to a PID file"),
    Flag("client_advertise", ("client_advertise",), "text", "    --client_advertise <string>",
         "Client URL to advertise to other servers"),
    Flag("ports_file_dir", ("ports_file_dir",), "text", "    --ports_file_dir <dir>",
         "Creates a ports file in the directory (nats-server_<pid>.ports)"),
)  # fmt: skip
LOGGING = (
    Flag("log", ("l", "log"), "text", "-l, --log <file>", "File to redirect log output"),
    Flag("logtime", ("T", "logtime"), "switch", "-T, --logtime",
         "Timestamp log entries (default: true)"),
    Flag("logtime_utc", ("logtime_utc",), "switch", "    --logtime_utc",
         "Timestamps in UTC instead of local timezone (default: false)"),
    Flag("syslog", ("s", "syslog"), "switch", "-s, --syslog", "Accepted without effect"),
    Flag("remote_syslog", ("r", "remote_syslog"), "text", "-r, --remote_syslog <addr>",
         "Accepted without effect"),
    Flag("debug", ("D", "debug"), "switch", "-D, --debug", "Enable debugging output"),
    Flag("trace", ("V", "trace"), "switch", "-V, --trace", "Trace the raw protocol"),
    Flag("VV", ("VV",), "switch", "-VV", "Verbose trace (traces system account as well)"),
    Flag("DV", ("DV",), "switch", "-DV", "Debug and trace"),
    Flag("DVV", ("DVV",), "switch", "-DVV",
         "Debug and verbose trace (traces system account as well)"),
    Flag("log_size_limit", ("log_size_limit",), "number", "    --log_size_limit <limit>",
         "Logfile size limit in bytes (default: none)"),
    Flag("max_traced_msg_len", ("max_traced_msg_len",), "number",
         "    --max_traced_msg_len <len>",
         "Maximum printable length for traced messages (default: unlimited)"),
)  # fmt: skip
JETSTREAM = (
    Flag("jetstream", ("js", "jetstream"), "switch", "-js, --jetstream",
         "Enable JetStream functionality"),
    Flag("store_dir", ("sd", "store_dir"), "text", "-sd, --store_dir <dir>",
         "Set the storage directory"),
)  # fmt: skip
AUTHORIZATION = (
    Flag("user", ("user",), "text", "    --user <user>", "User required for connections"),
    Flag("pass", ("pass",), "text", "    --pass <password>", "Password required for connections"),
    Flag("auth", ("auth",), "text", "    --auth <token>",
         "Authorization token required for connections"),
)  # fmt: skip
TLS = (
    Flag("tls", ("tls",), "switch", "    --tls",
         "Enable TLS, do not verify clients (default: false)"),
    Flag("tlscert", ("tlscert",), "text", "    --tlscert <file>", "Server certificate file"),
    Flag("tlskey", ("tlskey",), "text", "    --tlskey <file>",
         "Private key for server certificate"),
    Flag("tlsverify", ("tlsverify",), "switch", "    --tlsverify",
         "Enable TLS, verify client certificates"),
    Flag("tlscacert", ("tlscacert",), "text", "    --tlscacert <file>",
         "Client certificate CA for verification"),
)  # fmt: skip
CLUSTER = (
    Flag("routes", ("routes",), "text", "    --routes <rurl-1, rurl-2>",
         "Routes to solicit and connect"),
    Flag("cluster", ("cluster",), "text", "    --cluster <cluster-url | name>",
         "Cluster URL for solicited routes, or the cluster's name"),
    Flag("cluster_name", ("cluster_name",), "text", "    --cluster_name <string>",
         "Cluster name"),
    Flag("no_advertise", ("no_advertise",), "switch", "    --no_advertise",
         "Do not advertise known cluster information to clients"),
    Flag("cluster_advertise", ("cluster_advertise",), "text", "    --cluster_advertise <string>",
         "Cluster URL to advertise to other servers"),
    Flag("connect_retries", ("connect_retries",), "number", "    --connect_retries <number>",
         "For implicit routes, number of connect retries"),
    Flag("cluster_listen", ("cluster_listen",), "text", "    --cluster_listen <url>",
         "Cluster url from which members can solicit routes"),
)  # fmt: skip
PROFILING = (
    Flag("profile", ("profile",), "number", "    --profile <port>", "Accepted without effect"),
)
COMMON = (
    Flag("help", ("h", "help"), "switch", "-h, --help", "Show this message"),
    Flag("version", ("v", "version"), "switch", "-v, --version", "Show version"),
    Flag("help_tls", ("help_tls",), "switch", "    --help_tls", "TLS help"),
)
GROUPS: tuple[tuple[str, tuple[Flag, ...]], ...] = (
    ("Server Options", SERVER),
    ("Logging Options", LOGGING),
    ("JetStream Options", JETSTREAM),
    ("Authorization Options", AUTHORIZATION),
    ("TLS Options", TLS),
    ("Cluster Options", CLUSTER),
    ("Profiling Options", PROFILING),
    ("Common Options", COMMON),
)
BY_NAME: dict[str, Flag] = {
    name: flag for _, flags in GROUPS for flag in flags for name in flag.names
}
TLS_HELP = """TLS needs a certificate and its key in PEM files; clients are verified by a CA file:

    --tls --tlscert server-cert.pem --tlskey server-key.pem
    --tlsverify --tlscert server-cert.pem --tlskey server-key.pem --tlscacert ca.pem
"""
