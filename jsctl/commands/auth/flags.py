"""Arguments and options that the groups of `auth` share."""

from jsctl.commands.toolkit.grammar.spec import Argument, Kind, Option

ACCOUNT = Argument("account", "Account to act on")
OPERATOR = Option("operator", "Operator hosting the account")
REMOVE_FORCE = Option("force", "Removes without prompting", Kind.FLAG, short="f")


def tags_of(what: str) -> Option:
    """Tags that are given."""
    return Option("tags", f"Tags to assign to this {what}", Kind.LIST)
