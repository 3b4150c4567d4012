"""`jsctl bench kv`: the table of its commands."""

from jsctl.commands.bench.flags import COMMON, MAX_BYTES, PURGE, THROTTLE, sleep
from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option


def _randomize(verb: str) -> Option:
    return Option(
        "randomize",
        f"Randomly {verb} messages using keys between 0 and this number (set to 0 for sequential "
        "access)",
        Kind.INTEGER,
        default="0",
    )


GROUP = Group(
    "kv",
    "KV benchmark operations",
    (
        Command(
            "put",
            "Put messages in a KV bucket",
            "bench.run:kv_put",
            (),
            (
                Option(
                    "storage",
                    'JetStream storage (memory/file) for the "benchstream" bucket',
                    default="file",
                    choices=("memory", "file"),
                ),
                Option(
                    "replicas",
                    'Number of replicas for the "benchstream" bucket',
                    Kind.INTEGER,
                    default="1",
                ),
                MAX_BYTES,
                Option(
                    "history", "History depth for the bucket in KV mode", Kind.UNSIGNED, default="1"
                ),
                PURGE,
                _randomize("put"),
                *THROTTLE,
            ),
            examples=("jsctl bench kv put --msgs 10000 --replicas 3",),
        ),
        Command(
            "get",
            "Get messages from a KV bucket",
            "bench.run:kv_get",
            (),
            (_randomize("get"),),
            examples=("jsctl bench kv get --msgs 10000",),
        ),
    ),
    options=(
        *COMMON,
        Option("bucket", "The bucket to use for the benchmark", default="benchbucket"),
        sleep("after putting each message"),
    ),
)
