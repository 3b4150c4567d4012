"""`jsctl server watch`: the table of its commands."""

from jsctl.commands.server.flags import REVERSE
from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option

_INTERVAL = (
    "Since the updates are sent on a 30 second interval this is not a point in time view.",
)


def _options(default: str, sorts: tuple[str, ...], what: str) -> tuple[Option, ...]:
    return (
        Option("sort", "Sorts by a specific property", default=default, choices=sorts),
        Option(
            "number",
            f"Amount of {what} to show by the selected dimension",
            Kind.INTEGER,
            short="n",
            default="0",
        ),
    )


_TRAFFIC = ("recvb", "recvm")
_SENT = ("sentb", "sentm")
_API = Group(
    "api",
    "Watch JetStream API",
    (
        Command(
            "requests",
            "Watch JS API Requests",
            "server.watch.api:requests",
            options=(
                Option("account", "Limit to JetStream account (regex)"),
                Option("top", "Shows top n requests", Kind.INTEGER, short="n", default="10"),
                Option("rate", "Rate interval to calculate", Kind.DURATION, default="1m"),
                Option("record-consumer", "Record consumer names", Kind.SWITCH, default="true"),
                Option(
                    "compact",
                    "Compact output of long asset and account names",
                    Kind.SWITCH,
                    default="true",
                ),
                REVERSE,
            ),
            aliases=("req",),
            examples=("jsctl server watch api requests --rate 10s",),
        ),
    ),
)

GROUP = Group(
    "watch",
    "Live views of server conditions",
    (
        _API,
        Command(
            "accounts",
            "Watch account usage",
            "server.watch.servers:accounts",
            options=_options("conns", ("conns", *_TRAFFIC, *_SENT, "slow", "subs"), "Accounts"),
            aliases=("account", "acct"),
            examples=("jsctl server watch accounts --sort sentb",),
            details=_INTERVAL,
        ),
        Command(
            "jetstream",
            "Watch JetStream statistics",
            "server.watch.servers:jetstream",
            options=_options("assets", ("api", "assets", "file", "mem"), "Servers"),
            aliases=("js", "jsz"),
            examples=("jsctl server watch jetstream --sort api",),
            details=_INTERVAL,
        ),
        Command(
            "servers",
            "Watch server statistics",
            "server.watch.servers:servers",
            options=_options(
                "conns",
                (
                    *("conns", "cpu", "gway", "mem", "name"),
                    *(*_TRAFFIC, "route", *_SENT, "slow", "subs"),
                ),
                "Servers",
            ),
            aliases=("server", "srv"),
            examples=("jsctl server watch servers --sort cpu -n 10",),
            details=_INTERVAL,
        ),
    ),
)
