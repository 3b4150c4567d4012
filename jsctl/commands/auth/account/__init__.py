"""`jsctl auth account`: the table of its commands."""

from jsctl.commands.auth.account.exports import GROUP as EXPORTS
from jsctl.commands.auth.account.imports import GROUP as IMPORTS
from jsctl.commands.auth.account.keys import GROUP as KEYS
from jsctl.commands.auth.account.mappings import GROUP as MAPPINGS
from jsctl.commands.auth.flags import OPERATOR, tags_of
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option

_NAME = Argument("account", "Unique name for this Account")
_ADD_TO = Option("operator", "Operator to add the account to")
_ACT_ON = Option("operator", "Operator to act on")


def _count(name: str, help_text: str, **more: str) -> Option:
    return Option(name, help_text, Kind.INTEGER, metavar=more.get("metavar", "-1"))


def _bytes(name: str, help_text: str) -> Option:
    return Option(name, help_text, Kind.SIZE, metavar="BYTES")


_LIMITS = (
    Option("bearer", "Allows bearer tokens", Kind.SWITCH),
    _count("connections", "Maximum allowed connections"),
    Option(
        "expiry",
        "How long this account should be valid for as a duration",
        Kind.DURATION,
        metavar="DURATION",
    ),
    _count("exports", "Maximum allowed exports"),
    _count("imports", "Maximum allowed imports"),
    Option("jetstream", "Enables JetStream", Kind.SWITCH),
    _count("js-consumers", "Sets the maximum Consumers any Stream in the account can have"),
    _bytes("js-disk", "Sets a Disk Storage quota"),
    _bytes("js-disk-stream", "Sets the maximum size a Disk Storage stream may be"),
    _count("js-max-pending", "Default Max Ack Pending for Tier 0 limits", metavar="MESSAGES"),
    _bytes("js-memory", "Sets a Memory Storage quota"),
    _bytes("js-memory-stream", "Sets the maximum size a Memory Storage stream may be"),
    Option(
        "js-stream-size-required", "Requires Streams to have a maximum size declared", Kind.FLAG
    ),
    _count("js-streams", "Sets the maximum Streams the account can have"),
    Option(
        "js-cluster-traffic",
        "Sets the account used for JetStream cluster traffic",
        metavar="ACCOUNT",
        choices=("owner", "system"),
    ),
    _count("leafnodes", "Maximum allowed Leafnode connections"),
    _bytes("payload", "Maximum allowed payload"),
    _count("subscriptions", "Maximum allowed subscriptions"),
    tags_of("Account"),
)

GROUP = Group(
    "account",
    "Manage NATS Accounts",
    (
        Command(
            "add",
            "Adds a new Account",
            "auth.account.change:add",
            (_NAME,),
            (
                _ADD_TO,
                Option("key", "The public key to use when signing the user"),
                *_LIMITS,
                Option("defaults", "Accept default values without prompting", Kind.FLAG),
            ),
            aliases=("create", "new"),
            examples=(
                "jsctl auth account add APP --defaults",
                "jsctl auth account add APP --jetstream --js-disk 10GB --js-memory 1GB --defaults",
            ),
        ),
        Command(
            "info",
            "Show Account information",
            "auth.account.show:info",
            (Argument("account", "Account to view"),),
            (OPERATOR, JSON),
            aliases=("i", "show", "view"),
        ),
        Command(
            "edit",
            "Edit Account settings",
            "auth.account.change:edit",
            (_NAME,),
            (_ADD_TO, *_LIMITS, Option("no-tags", "Tags to remove", Kind.LIST, hidden=True)),
            aliases=("update",),
        ),
        Command(
            "ls",
            "List Accounts",
            "auth.account.show:ls",
            (Argument("operator", "Operator to act on"),),
            (Option("names", "Show just the Account names", Kind.FLAG),),
        ),
        Command(
            "push",
            "Push the Account to the NATS Resolver",
            "auth.account.resolver:push",
            (Argument("account", "Account to act on"),),
            (_ACT_ON, Option("show", "Show the Account JWT before pushing", Kind.FLAG)),
            examples=("jsctl auth account push APP --creds sys.creds",),
        ),
        Command(
            "query",
            "Pull the Account from the NATS Resolver and view it",
            "auth.account.resolver:query",
            (
                Argument("account", "Account to act on", required=True),
                Argument("output", "Saves the JWT to a file"),
            ),
            (_ACT_ON,),
            aliases=("pull",),
        ),
        IMPORTS,
        EXPORTS,
        KEYS,
        MAPPINGS,
    ),
    aliases=("a", "acct", "act"),
)
