"""`jsctl backup`: the table of its commands."""

from jsctl.commands.backup.flags import CONSUMERS, PROGRESS
from jsctl.commands.backup.restore import GROUP as RESTORE
from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option

_SOURCE = Argument("source", "The directory holding the backup", required=True, kind=Kind.FOLDER)


def _kept(name: str, help_text: str, metavar: str) -> Option:
    return Option(name, help_text, Kind.LIST, metavar=metavar)


GROUP = Group(
    "backup",
    "Backup, restore, inspect and edit JetStream streams",
    (
        Command(
            "stream",
            "Creates a backup of a stream over the NATS network",
            "backup.take:stream",
            (
                Argument("stream", "Stream to backup", required=True),
                Argument("target", "Directory to create the backup in", required=True),
            ),
            (
                PROGRESS,
                Option("check", "Checks the stream for health prior to backup", Kind.FLAG),
                CONSUMERS,
                Option(
                    "chunk-size", "Sets a specific chunk size that the server will send", Kind.SIZE
                ),
                Option(
                    "window-size",
                    "Sets a specific window size that the server will send",
                    Kind.SIZE,
                ),
            ),
            examples=("jsctl backup stream ORDERS /backup/orders",),
        ),
        Command(
            "account",
            "Creates a backup of all  JetStream Streams over the NATS network",
            "backup.take:account",
            (Argument("target", "Directory to create the backup in", required=True),),
            (
                Option("check", "Checks the Stream for health prior to backup", Kind.FLAG),
                CONSUMERS,
                FORCE,
                Option("critical-warnings", "Treat warnings as failures", Kind.FLAG, short="w"),
            ),
            examples=("jsctl backup account /backup/today --force",),
        ),
        RESTORE,
        Command(
            "edit",
            "Creates an edited copy of a stream backup",
            "backup.edit:edit",
            (
                Argument(
                    "source",
                    "The directory holding the backup to edit",
                    required=True,
                    kind=Kind.FOLDER,
                ),
                Argument("target", "Directory to create the edited backup in", required=True),
            ),
            (
                _kept("subject", "Keep messages matching a subject pattern", "PATTERN"),
                _kept("exclude-subject", "Drop messages matching a subject pattern", "PATTERN"),
                Option(
                    "after",
                    "Keep messages stored at or after an RFC3339 time or a duration like 2h",
                    metavar="TIME",
                ),
                Option(
                    "before",
                    "Keep messages stored before an RFC3339 time or a duration like 2h",
                    metavar="TIME",
                ),
                Option(
                    "first-seq",
                    "Keep messages with this sequence or higher",
                    Kind.UNSIGNED,
                    metavar="N",
                ),
                Option(
                    "last-seq",
                    "Keep messages with this sequence or lower",
                    Kind.UNSIGNED,
                    metavar="N",
                ),
                _kept(
                    "header",
                    "Keep messages carrying a header, as NAME or NAME:VALUE",
                    "NAME[:VALUE]",
                ),
                _kept("exclude-header", "Drop messages carrying a header", "NAME"),
                _kept(
                    "payload-match",
                    "Keep messages whose payload matches a regular expression",
                    "REGEX",
                ),
                _kept(
                    "exclude-payload-match",
                    "Drop messages whose payload matches a regular expression",
                    "REGEX",
                ),
                Option(
                    "last-per-subject",
                    "Keep only the newest N messages of every subject",
                    Kind.INTEGER,
                    metavar="N",
                ),
                Option(
                    "kv-compact",
                    "Keep the latest revision of each key and drop deleted keys. "
                    "KV backups only, exclusive with --last-per-subject",
                    Kind.FLAG,
                ),
                Option(
                    "renumber",
                    "Number the kept messages from 1 and drop all consumers",
                    Kind.FLAG,
                ),
                Option(
                    "dry-run",
                    "Only shows what the edit would do, does not write the target",
                    Kind.FLAG,
                ),
                Option(
                    "obfuscate",
                    "Replace names and subjects with keyed hashes and message bodies with zeros "
                    "of the same length. Keeps counter stream values. Writes the key file beside "
                    "the target",
                    Kind.FLAG,
                ),
                Option(
                    "obfuscation-key",
                    "Reuse the secret and mappings from an earlier key file",
                    Kind.FILE,
                    metavar="FILE",
                ),
                PROGRESS,
                JSON,
            ),
            examples=(
                "jsctl backup edit /backup/orders /backup/new --subject 'orders.new' --after 24h",
                "jsctl backup edit /backup/orders /backup/last --last-per-subject 1 --dry-run",
            ),
        ),
        Command(
            "info",
            "Stream backup information",
            "backup.show:info",
            (_SOURCE,),
            (
                Option(
                    "subjects", "List every subject in the backup with its message count", Kind.FLAG
                ),
                PROGRESS,
                JSON,
            ),
            examples=("jsctl backup info /backup/orders --subjects",),
        ),
        Command(
            "validate",
            "Validates that a stream backup is complete and restorable",
            "backup.show:validate",
            (_SOURCE,),
            (PROGRESS, JSON),
            examples=("jsctl backup validate /backup/orders",),
        ),
        Command(
            "lookup",
            "Looks up obfuscated values in a key file",
            "backup.edit:lookup",
            (
                Argument(
                    "keyfile",
                    "The key file written beside an obfuscated backup",
                    required=True,
                    kind=Kind.INPUT,
                ),
                Argument(
                    "value",
                    "Obfuscated values to look up, subjects are looked up token by token",
                    required=True,
                    many=True,
                ),
            ),
            examples=("jsctl backup lookup /backup/shown.keys.json 8j3d9s0a1k2m4n5p",),
        ),
    ),
)
