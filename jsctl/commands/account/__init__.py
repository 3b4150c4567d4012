"""`jsctl account`: the table of its commands."""

from jsctl.commands.account.report import GROUP as REPORT
from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option

GROUP = Group(
    "account",
    "Account information and status",
    (
        Command(
            "info",
            "Account information",
            "account.info:info",
            options=(JSON,),
            aliases=("nfo",),
            examples=("jsctl account info", "jsctl account info --context prod -j"),
        ),
        REPORT,
        Command(
            "backup",
            "Creates a backup of all  JetStream Streams over the NATS network",
            "account.backup:backup",
            (Argument("target", "Directory to create the backup in", required=True),),
            (
                Option("check", "Checks the Stream for health prior to backup", Kind.FLAG),
                Option("consumers", "Enable or disable consumer backups", Kind.SWITCH),
                FORCE,
                Option("critical-warnings", "Treat warnings as failures", Kind.FLAG, short="w"),
            ),
            aliases=("snapshot",),
            hidden=True,
        ),
        Command(
            "restore",
            "Restore an account backup over the NATS network",
            "account.backup:restore",
            (
                Argument(
                    "directory",
                    "The directory holding the account backup to restore",
                    required=True,
                ),
            ),
            (
                Option("cluster", "Place the stream in a specific cluster"),
                Option("tag", "Place the stream on servers with specific tags", Kind.LIST),
            ),
            hidden=True,
        ),
        Command(
            "tls",
            "Report TLS chain for connected server",
            "account.tls:tls",
            options=(
                Option(
                    "expire-warn",
                    "Warn about certs expiring this soon, 0 to disable",
                    Kind.DURATION,
                    default="1w",
                ),
                Option("ocsp", "Report OCSP information, if any", Kind.FLAG),
                Option("pem", "Show PEM Certificate blocks (true)", Kind.SWITCH, default="true"),
            ),
            examples=("jsctl account tls --no-pem --tlsca ca.pem",),
        ),
    ),
)
