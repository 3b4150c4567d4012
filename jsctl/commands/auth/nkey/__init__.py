"""`jsctl auth nkey`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

KINDS = ("user", "account", "server", "cluster", "operator", "curve", "x25519")
_KEY = "File containing NKey to "

GROUP = Group(
    "nkey",
    "Create and Use NKeys",
    (
        Command(
            "gen",
            "Generates NKeys",
            "auth.nkey.run:gen",
            (Argument("type", "Type of key to generate", required=True, choices=KINDS),),
            (
                Option("public", "Output the public key", Kind.FLAG),
                Option("entropy", "Source of entropy eg. /dev/urandom", Kind.INPUT),
                Option("output", "Write the key to a file"),
            ),
            examples=("jsctl auth nkey gen user --public",),
        ),
        Command(
            "show",
            "Show the public key",
            "auth.nkey.run:show",
            (Argument("key", f"{_KEY}act on", required=True, kind=Kind.INPUT),),
        ),
        Command(
            "sign",
            "Signs data using NKeys",
            "auth.nkey.run:sign",
            (
                Argument("file", "File to sign", required=True, kind=Kind.INPUT),
                Argument("key", f"{_KEY}sign with", required=True, kind=Kind.INPUT),
            ),
        ),
        Command(
            "verify",
            "Verify signed data",
            "auth.nkey.run:verify",
            (
                Argument(
                    "file", "File containing the data to check", required=True, kind=Kind.INPUT
                ),
                Argument(
                    "signature", "File containing the signature", required=True, kind=Kind.INPUT
                ),
                Argument("key", f"{_KEY}use for verification", required=True, kind=Kind.INPUT),
            ),
        ),
        Command(
            "seal",
            "Encrypts a file using NKeys",
            "auth.nkey.run:seal",
            (
                Argument("file", "File to encrypt", required=True, kind=Kind.INPUT),
                Argument("key", f"{_KEY}encrypt with", required=True, kind=Kind.INPUT),
                Argument("recipient", "Public XKey of recipient", required=True),
            ),
            (
                Option("output", "Write the encrypted data to a file"),
                Option("b64", "Write base64 encoded data", Kind.SWITCH, default="true"),
            ),
            aliases=("encrypt", "enc"),
        ),
        Command(
            "unseal",
            "Decrypts a file using NKeys",
            "auth.nkey.run:unseal",
            (
                Argument("file", "File to decrypt", required=True, kind=Kind.INPUT),
                Argument("key", f"{_KEY}decrypt with", required=True, kind=Kind.INPUT),
                Argument("sender", "Public XKey of sender", required=True),
            ),
            (
                Option("output", "Write the decrypted data to a file"),
                Option("b64", "Read data in as base64 encoded", Kind.SWITCH, default="true"),
            ),
            aliases=("open", "decrypt", "dec"),
        ),
    ),
    aliases=("nk",),
)
