"""`jsctl server request`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option
from jsctl.commands.toolkit.monitoring.flags import ARCHIVE

_OPTIONS = (
    Option(
        "limit", "Limit the responses to a certain amount of records", Kind.INTEGER, default="2048"
    ),
    Option("offset", "Start at a certain record", Kind.INTEGER, default="0"),
    Option("name", "Limit to servers matching a server name"),
    Option("host", "Limit to servers matching a server host name"),
    Option("cluster", "Limit to servers matching a cluster name"),
    Option("tags", "Limit to servers with these configured tags", Kind.LIST),
)
_WAIT = Argument("wait", "Wait for a certain number of responses", kind=Kind.UNSIGNED, bits=32)
_CONNECTION_SORTS = (
    *("cid", "start", "subs", "pending", "msgs_to", "msgs_from", "bytes_to", "bytes_from"),
    *("last", "idle", "uptime", "stop", "reason", "rtt"),
)
_ACCOUNT = Option("account", "Account to report on")


def _flag(name: str, text: str, short: str = "") -> Option:
    return Option(name, text, Kind.FLAG, short=short)


_OF_CONNECTIONS = (
    Option("sort", "Sort by a specific property", default="cid", choices=_CONNECTION_SORTS),
    _flag("subscriptions", "Show subscriptions"),
    Option("filter-cid", "Filter on a specific CID", Kind.UNSIGNED, metavar="CID"),
    Option(
        "filter-state",
        "Filter on a specific connection state",
        default="open",
        choices=("open", "closed", "all"),
    ),
    Option("filter-user", "Filter on a specific username", metavar="USER"),
    Option("filter-account", "Filter on a specific account", metavar="ACCOUNT"),
    Option(
        "filter-subject",
        ("Limits responses only to those connections with matching subscription interest"),
        metavar="SUBJECT",
    ),
    _flag("filter-empty", "Only shows responses that have connections"),
)


def _request(
    name: str,
    text: str,
    options: tuple[Option, ...] = (),
    *,
    aliases: tuple[str, ...] = (),
    arguments: tuple[Argument, ...] = (_WAIT,),
) -> Command:
    run = f"server.request.documents:{name.replace('-', '_')}"
    return Command(name, text, run, arguments, (*options, ARCHIVE), aliases=aliases)


def _network_requests() -> tuple[Command, ...]:
    return (
        _request("accounts", "Show account details", (_ACCOUNT,), aliases=("accountz", "acct")),
        _request(
            "connections",
            "Show connection details",
            _OF_CONNECTIONS,
            aliases=("conn", "connz"),
        ),
        _request(
            "gateways",
            "Show gateway details",
            (
                Option(
                    "filter-account",
                    "Show only a certain account in account detail",
                    metavar="ACCOUNT",
                ),
                _flag("accounts", "Show account detail"),
                Option("subscriptions", "Show subscriptions", Kind.SWITCH, default="true"),
            ),
            aliases=("gateway", "gwy", "gatewayz"),
            arguments=(_WAIT, Argument("filter-name", "Filter results on gateway name")),
        ),
        _request(
            "leafnodes",
            "Show leafnode details",
            (_flag("subscriptions", "Show subscription detail"),),
            aliases=("leaf", "leafz"),
        ),
        _request(
            "routes",
            "Show route details",
            (_flag("subscriptions", "Show subscription detail"),),
            aliases=("route", "routez"),
        ),
        _request(
            "subscriptions",
            "Show subscription information",
            (
                _flag("detail", "Include detail about all subscriptions"),
                Option("filter-account", "Filter on a specific account", metavar="ACCOUNT"),
                Option(
                    "filter-subject",
                    "Filter based on subscriptions matching this subject",
                    metavar="SUBJECT",
                ),
            ),
            aliases=("sub", "subsz"),
        ),
        _request("variables", "Show runtime variables", aliases=("var", "varz")),
    )


def _jetstream_requests() -> tuple[Command, ...]:
    return (
        _request(
            "jetstream-health",
            "Request JetStream health status",
            (
                Option(
                    "js-enabled",
                    "Checks that JetStream should be enabled on all servers",
                    Kind.SWITCH,
                    short="J",
                ),
                Option(
                    "server-only",
                    (
                        "Restricts the health check to the JetStream server only, "
                        "do not check streams and consumers"
                    ),
                    Kind.SWITCH,
                    short="S",
                ),
                _ACCOUNT,
                Option("stream", "Check only a specific Stream"),
                Option("consumer", "Check only a specific Consumer"),
                Option(
                    "details",
                    "Include extended details about all failures",
                    Kind.SWITCH,
                    default="true",
                ),
            ),
            aliases=("healthz",),
        ),
        _request(
            "jetstream",
            "Show JetStream details",
            (
                Option("account", "Show statistics scoped to a specific account"),
                _flag("accounts", "Include details about accounts"),
                _flag("streams", "Include details about Streams"),
                Option(
                    "consumer",
                    "Include details about Consumers",
                    Kind.FLAG,
                    aliases=("consumers",),
                ),
                _flag("config", "Include details about configuration"),
                _flag("raft", "Include details about raft groups"),
                _flag("leader", "Request a response from the Meta-group leader only"),
                _flag("stream-leader", "Request a response from Stream leaders only"),
                _flag("all", "Include accounts, streams, consumers and configuration"),
            ),
            aliases=("jsz", "js"),
        ),
    )


def _process_requests() -> tuple[Command, ...]:
    return (
        _request(
            "ipqueue",
            "Show IP Queue details",
            (
                Option("all", "Shows all available information", Kind.SWITCH, default="true"),
                Option("filter", "Filter results for specific queues"),
            ),
            aliases=("ipq", "ipqueuesz"),
            arguments=(),
        ),
        Command(
            "kick",
            "Disconnects a client immediately",
            "server.request.single:kick",
            (
                Argument(
                    "client", "The Client ID to disconnect", required=True, kind=Kind.UNSIGNED
                ),
                Argument("server", "The Server ID to disconnect the client from", required=True),
            ),
            examples=("jsctl server request kick 42 NBK7...",),
        ),
        Command(
            "profile",
            "Run a profile",
            "server.request.single:profile",
            (
                Argument(
                    "profile",
                    (
                        "Specify the name of the profile to run (allocs, heap, "
                        "goroutine, mutex, threadcreate, block, cpu)"
                    ),
                    required=True,
                    choices=(
                        *("allocs", "heap", "goroutine", "mutex", "threadcreate", "block", "cpu"),
                    ),
                ),
                Argument(
                    "dir",
                    "Set the output directory for profile files",
                    default=".",
                    kind=Kind.FOLDER,
                ),
            ),
            (Option("level", "Set the debug level of the profile", Kind.INTEGER), ARCHIVE),
            examples=("jsctl server request profile heap --name n1",),
        ),
        _request(
            "raft",
            "Show RAFT state details",
            (
                Option("account", "Filters on an specific account"),
                Option("group", "Filters on a specific group"),
            ),
            aliases=("raftz",),
            arguments=(),
        ),
    )


GROUP = Group(
    "request",
    "Request monitoring data from a specific server",
    (*_network_requests(), *_jetstream_requests(), *_process_requests()),
    options=_OPTIONS,
    aliases=("req",),
)
