"""`jsctl server`: the table of its commands."""

from jsctl.commands.server.account import GROUP as ACCOUNT
from jsctl.commands.server.check import GROUP as CHECK
from jsctl.commands.server.cluster import GROUP as CLUSTER
from jsctl.commands.server.config import GROUP as CONFIG
from jsctl.commands.server.flags import COMPACT, REVERSE
from jsctl.commands.server.report import GROUP as REPORT
from jsctl.commands.server.request import GROUP as REQUEST
from jsctl.commands.server.watch import GROUP as WATCH
from jsctl.commands.toolkit.grammar.live import PICTURE
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option
from jsctl.commands.toolkit.monitoring.flags import ARCHIVE

_SERVER_SORTS = (
    *("name", "cluster", "conns", "conn", "subs", "sub", "routes", "route"),
    *("gw", "mem", "cpu", "slow", "uptime", "rtt"),
)
_REPLICAS = (
    Option("stream", "Filter results by stream"),
    Option("raft-group", "Filter results by raft group"),
    Option("health", "Check health from streams and consumers", Kind.FLAG),
    Option("expected", "Expected number of servers", Kind.INTEGER),
    Option("unsynced", "Filter results by what is out of sync", Kind.FLAG),
    Option(
        "stdin", "Process the result of 'server request jsz --all --config' from STDIN", Kind.FLAG
    ),
    Option("read-timeout", "Read timeout in seconds", Kind.INTEGER, default="5"),
    Option("csv", "Renders CSV format", Kind.FLAG),
)
_EXPECT = Argument("expect", "How many servers to expect", kind=Kind.UNSIGNED, bits=32)

GROUP = Group(
    "server",
    "Server information",
    (
        ACCOUNT,
        CHECK,
        CLUSTER,
        CONFIG,
        Command(
            "generate",
            "Generate server configurations",
            "server.development.generate:generate",
            (Argument("target", "Write the output to a specific location", required=True),),
            (
                Option("source", "Fetch the configuration bundle from a file or URL"),
                Option("template", "What to generate", choices=("operator", "cluster")),
                Option("operator", "Operator that runs the server"),
                Option("set", "Answers a question", Kind.MAP),
                Option("defaults", "Takes the defaults of all other questions", Kind.FLAG),
            ),
            aliases=("gen",),
            examples=(
                "jsctl server generate /etc/nats --template operator --set server_name=n1",
                "jsctl server generate dev --template cluster --defaults",
            ),
        ),
        Command(
            "graph",
            "Show graphs for a single server",
            "server.graph:graph_server",
            (Argument("server", "Server ID or Name to inspect", required=True),),
            (
                Option("jetstream", "Draw JetStream statistics", Kind.FLAG, short="j"),
                *PICTURE,
            ),
            examples=("jsctl server graph n1", "jsctl server graph n1 --jetstream"),
        ),
        Command(
            "info",
            "Show information about a single server",
            "server.show:info",
            (Argument("server", "Server ID or Name to inspect"),),
            (JSON, ARCHIVE),
            aliases=("i",),
            examples=("jsctl server info", "jsctl server info n1 -j"),
        ),
        Command(
            "list",
            "List known servers",
            "server.show:list_servers",
            (_EXPECT,),
            (
                JSON,
                Option("sort", "Sort servers by a key", default="rtt", choices=_SERVER_SORTS),
                REVERSE,
                COMPACT,
                ARCHIVE,
            ),
            aliases=("ls",),
            examples=("jsctl server list", "jsctl server ls --sort mem"),
        ),
        Command(
            "mappings",
            "Test subject mapping patterns",
            "server.tools.mappings:mappings",
            (
                Argument("source", "Source subject pattern"),
                Argument("dest", "Destination subject pattern"),
                Argument("subject", "Subject to transform"),
            ),
            aliases=("mapping",),
            examples=("jsctl server mappings 'orders.*' 'shard.{{partition(3,1)}}' orders.new",),
        ),
        Command(
            "passwd",
            "Creates encrypted passwords for use in NATS Server",
            "server.tools.passwd:passwd",
            options=(
                Option("pass", "The password to encrypt (PASSWORD)", short="p"),
                Option(
                    "cost",
                    "The cost to use in the bcrypt argument",
                    Kind.UNSIGNED,
                    short="c",
                    default="11",
                ),
                Option(
                    "generate", "Generates a secure passphrase and encrypt it", Kind.FLAG, short="g"
                ),
            ),
            aliases=("mkpasswd", "pass", "password"),
            examples=("jsctl server passwd --generate",),
        ),
        Command(
            "ping",
            "Ping all servers",
            "server.show:ping",
            (_EXPECT,),
            (
                Option("id", "Include the Server ID in the output", Kind.FLAG),
                Option("graph", "Produce a response distribution graph", Kind.FLAG),
                JSON,
            ),
            examples=("jsctl server ping", "jsctl server ping 3 --id"),
        ),
        REPORT,
        REQUEST,
        Command(
            "run",
            "Runs a local development NATS server or cluster",
            "server.development.run:run",
            (
                Argument(
                    "name", "Name of the instance and of its contexts", default="nats_development"
                ),
            ),
            (
                Option("servers", "How many servers form the cluster", Kind.INTEGER, default="1"),
                Option("port", "The first port for clients", Kind.INTEGER, default="4222"),
                Option("jetstream", "Enables JetStream", Kind.SWITCH, default="true"),
                Option("http", "Enables HTTP monitoring, 4000 ports above", Kind.FLAG),
                Option("directory", "Where data, logs and passwords are kept", metavar="DIR"),
                Option("select", "Selects the context of the user", Kind.FLAG),
                Option("clean", "Removes contexts and data when it ends", Kind.FLAG),
                Option("verbose", "Shows the log of the servers", Kind.FLAG),
                JSON,
            ),
            examples=("jsctl server run", "jsctl server run dev --servers 3 --port 4300 --clean"),
        ),
        WATCH,
        Command(
            "stream-check",
            "Check and display stream information",
            "server.replicas:streams",
            options=_REPLICAS,
            examples=("jsctl server stream-check --unsynced",),
            hidden=True,
        ),
        Command(
            "consumer-check",
            "Check and display consumer information",
            "server.replicas:consumers",
            options=(Option("consumer", "Filter results by consumer"), *_REPLICAS),
            examples=("jsctl server consumer-check --stream ORDERS",),
            hidden=True,
        ),
    ),
)
