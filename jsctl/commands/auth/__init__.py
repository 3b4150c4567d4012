"""`jsctl auth`: the table of its groups."""

from jsctl.commands.auth.account import GROUP as ACCOUNT
from jsctl.commands.auth.nkey import GROUP as NKEY
from jsctl.commands.auth.nuid import GROUP as NUID
from jsctl.commands.auth.operator import GROUP as OPERATOR
from jsctl.commands.auth.user import GROUP as USER
from jsctl.commands.toolkit.grammar.spec import Group

GROUP = Group(
    "auth",
    "NATS Decentralized Authentication",
    (OPERATOR, ACCOUNT, USER, NKEY, NUID),
)
