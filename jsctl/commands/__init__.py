"""The commands: parse -> client -> render.

`REGISTRY` names every top-level command and the module that has it, so that help and completion
import none of them. A module holds `GROUP` (with sub-commands), `COMMAND`, or a function `main`
that takes the remaining words as they are.

The tree of folders is the tree of commands. A folder's `__init__` declares its group and imports
nothing that does anything; a group in it is a folder in it; the other files are the functions,
which the declarations name as `module:name`. A command without a group is a folder in a room of
its like, as `messages`. What several groups need is in the `toolkit`; no group knows another one.
"""

from typing import NamedTuple

DELEGATED = "plugin"
"""What runs a command of a plugin: another program, see `plugins.stored`."""


class Entry(NamedTuple):
    """A row of the registry; `attribute` is the name of the declaration in the module,
    a `hidden` one is not listed.

    A tuple: every start makes this class, and a dataclass takes ten times as long to make.
    """

    name: str
    aliases: tuple[str, ...]
    module: str
    help: str
    attribute: str = "GROUP"
    hidden: bool = False


REGISTRY: tuple[Entry, ...] = (
    Entry("account", ("a",), "jsctl.commands.account", "Account information and status"),
    Entry("audit", (), "jsctl.commands.audit", "Audit a NATS deployment"),
    Entry("auth", (), "jsctl.commands.auth", "NATS Decentralized Authentication"),
    Entry(
        "backup",
        (),
        "jsctl.commands.backup",
        "Backup, restore, inspect and edit JetStream streams",
    ),
    Entry("bench", (), "jsctl.commands.bench", "Benchmark utility"),
    Entry("broker", (), "jsctl.commands.broker", "Runs a JetStream server", "main"),
    Entry(
        "cheat",
        (),
        "jsctl.commands.cheat",
        "Shows examples of all commands",
        "COMMAND",
        hidden=True,
    ),
    Entry(
        "completion",
        (),
        "jsctl.commands.completion",
        "Prints the completion script of a shell",
        "COMMAND",
    ),
    Entry(
        "consumer",
        ("con", "obs", "c"),
        "jsctl.commands.consumer",
        "JetStream consumer management",
    ),
    Entry("context", ("ctx",), "jsctl.commands.context", "Manage nats configuration contexts"),
    Entry("counter", ("ctr",), "jsctl.commands.counter", "Access distributed Counters"),
    Entry(
        "dashboard",
        ("dash",),
        "jsctl.commands.dashboard",
        "An interactive view of the cluster, worst things first",
        "COMMAND",
    ),
    Entry(
        "dlq",
        (),
        "jsctl.commands.dlq",
        "Dead letters: messages that consumers gave up",
    ),
    Entry("errors", ("err", "error"), "jsctl.commands.errors", "Error code documentation"),
    Entry(
        "events", ("event", "e"), "jsctl.commands.events", "Show Advisories and Events", "COMMAND"
    ),
    Entry(
        "jsm",
        (),
        "jsctl.commands.jsm",
        "JetStream management with the words of the JetStream preview",
    ),
    Entry("jwt", (), "jsctl.commands.jwt", "Inspect NATS JWTs"),
    Entry("kv", (), "jsctl.commands.kv", "Interacts with a JetStream based Key-Value store"),
    Entry(
        "latency",
        ("lat",),
        "jsctl.commands.latency",
        "Perform latency tests between two NATS servers",
        "COMMAND",
    ),
    Entry(
        "object",
        ("obj",),
        "jsctl.commands.object",
        "Interacts with a JetStream based Object store",
    ),
    Entry(
        "pipeline",
        ("pipe",),
        "jsctl.commands.pipeline",
        "Declarative pipelines, archives, audits and reports with Spark",
    ),
    Entry("plugins", (), "jsctl.commands.plugins", "Manage plugins", hidden=True),
    Entry(
        "publish",
        ("pub",),
        "jsctl.commands.messages.publish",
        "Generic data publish utility",
        "COMMAND",
    ),
    Entry("reply", (), "jsctl.commands.messages.reply", "Generic service reply utility", "COMMAND"),
    Entry(
        "request",
        ("req",),
        "jsctl.commands.messages.request",
        "Generic request-reply utility",
        "COMMAND",
    ),
    Entry("rtt", (), "jsctl.commands.rtt", "Compute round-trip time to NATS server", "COMMAND"),
    Entry("schema", (), "jsctl.commands.schema", "Schema tools"),
    Entry("server", ("srv", "sys", "system"), "jsctl.commands.server", "Server information"),
    Entry("service", ("micro",), "jsctl.commands.service", "Services discovery and management"),
    Entry(
        "stream", ("str", "st", "ms", "s"), "jsctl.commands.stream", "JetStream stream management"
    ),
    Entry(
        "subscribe",
        ("sub",),
        "jsctl.commands.messages.subscribe",
        "Generic subscription client",
        "COMMAND",
    ),
    Entry(
        "top",
        (),
        "jsctl.commands.top",
        "Shows top-like statistic for connections on a specific server",
        "COMMAND",
    ),
    Entry(
        "trace",
        (),
        "jsctl.commands.trace",
        "Trace message delivery within an NATS network",
        "COMMAND",
    ),
    Entry(
        "traffic",
        (),
        "jsctl.commands.traffic",
        "Monitor NATS network traffic",
        "COMMAND",
        hidden=True,
    ),
)
