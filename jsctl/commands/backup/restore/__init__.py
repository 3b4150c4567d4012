"""`jsctl backup restore`: the table of its commands."""

from jsctl.commands.backup.flags import CLUSTER, PROGRESS, TAG
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

GROUP = Group(
    "restore",
    "Restores backups over the NATS network",
    (
        Command(
            "stream",
            "Restore a stream over the NATS network",
            "backup.restore.run:stream",
            (
                Argument(
                    "file",
                    "The directory holding the backup to restore",
                    required=True,
                    kind=Kind.FOLDER,
                ),
            ),
            (
                PROGRESS,
                Option(
                    "config",
                    "Load a different configuration when restoring the stream",
                    Kind.INPUT,
                ),
                CLUSTER,
                TAG,
                Option(
                    "replicas",
                    "Override how many replicas of the data to create",
                    Kind.INTEGER,
                    metavar="REPLICAS",
                ),
            ),
            examples=("jsctl backup restore stream /backup/orders --replicas 3",),
        ),
        Command(
            "account",
            "Restore an account backup over the NATS network",
            "backup.restore.run:account",
            (
                Argument(
                    "directory",
                    "The directory holding the account backup to restore",
                    required=True,
                    kind=Kind.FOLDER,
                ),
            ),
            (CLUSTER, TAG),
            examples=("jsctl backup restore account /backup/today",),
        ),
    ),
)
