"""`jsctl auth user`: the table of its commands."""

from jsctl.commands.auth.flags import REMOVE_FORCE, tags_of
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option

_NAME = Argument("name", "Unique name for this User")
_ACCOUNT = Argument("account", "Account to query")
_OPERATOR = Option("operator", "Operator holding the Account")
_OVERWRITE = Option("force", "Overwrite existing files", Kind.FLAG, short="f")
_CREDENTIAL = Option("credential", "Writes credentials to a file")
_RULES = (
    Option("bearer", "Enables the use of bearer tokens", Kind.SWITCH),
    Option("data", "Maximum message data size to allow", Kind.INTEGER, metavar="-1"),
    Option("locale", "Sets the locale for the user connection"),
    Option("payload", "Maximum payload size to allow", Kind.INTEGER, metavar="1048576"),
    Option("pub-allow", "Allow publishing to a subject", Kind.LIST),
    Option("pub-deny", "Deny publishing to a subject", Kind.LIST),
    Option("sub-allow", "Allow subscribing to a subject", Kind.LIST),
    Option("sub-deny", "Deny subscribing to a subject", Kind.LIST),
    Option("subscriptions", "Maximum subscription count to allow", Kind.INTEGER, metavar="-1"),
    tags_of("User"),
)

GROUP = Group(
    "user",
    "Manage Account Users",
    (
        Command(
            "add",
            "Adds a new User",
            "auth.user.change:add",
            (
                Argument("name", "Unique name for this User", required=True),
                Argument("account", "Account to add the user to"),
            ),
            (
                Option("key", "The public key to use when signing the user"),
                Option("operator", "Operator to add the user to"),
                *_RULES,
                _OVERWRITE,
                _CREDENTIAL,
                Option("defaults", "Accept default values without prompting", Kind.FLAG),
            ),
            aliases=("create", "new"),
            examples=(
                "jsctl auth user add bob APP --defaults --credential bob.creds",
                "jsctl auth user add reader APP --key reader --defaults",
            ),
        ),
        Command(
            "info",
            "Show User information",
            "auth.user.show:info",
            (_NAME, _ACCOUNT),
            (_OPERATOR, JSON),
            aliases=("i", "show", "view"),
        ),
        Command(
            "edit",
            "Edits User settings",
            "auth.user.change:edit",
            (_NAME, _ACCOUNT),
            (
                _OPERATOR,
                *_RULES,
                Option("no-tags", "Tags to remove from this User", Kind.LIST),
                _CREDENTIAL,
            ),
            aliases=("update",),
        ),
        Command(
            "ls",
            "List users",
            "auth.user.show:ls",
            (_ACCOUNT,),
            (_OPERATOR, Option("names", "Show just the Account names", Kind.FLAG)),
        ),
        Command(
            "rm",
            "Removes an user",
            "auth.user.change:remove",
            (_NAME, _ACCOUNT),
            (
                _OPERATOR,
                Option("revoke", "Also revokes the user before deleting it", Kind.FLAG),
                REMOVE_FORCE,
            ),
        ),
        Command(
            "credential",
            "Creates a credential file for a user",
            "auth.user.credential:credential",
            (
                Argument("file", "The file to create", required=True),
                Argument("name", "User to generate a credential for"),
                _ACCOUNT,
            ),
            (
                Option("expire", "Duration till expiry", Kind.DURATION),
                _OPERATOR,
                _OVERWRITE,
            ),
            aliases=("cred", "creds"),
            examples=("jsctl auth user credential bob.creds bob APP --expire 24h",),
        ),
    ),
    aliases=("u", "usr", "users"),
)
