"""`jsctl jwt`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group

GROUP = Group(
    "jwt",
    "Inspect NATS JWTs",
    (
        Command(
            "decode",
            "Decode JWT claims",
            "jwt.decode:decode",
            (Argument("jwt", "JWT string or file holding a JWT", required=True),),
            (JSON,),
            aliases=("de", "d"),
            examples=("jsctl jwt decode bob.creds", "jsctl jwt decode APP.jwt -j"),
        ),
    ),
)
