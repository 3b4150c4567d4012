"""`jsctl jsm`: the words of the JetStream preview's tool, over the same commands.

The preview called consumers observables and had one flat list of verbs. Each verb is the
`stream` or `consumer` command it became, so that habits and old scripts keep working.
"""

from dataclasses import replace

from jsctl.commands import consumer, stream
from jsctl.commands.toolkit.assets.flags import STREAM
from jsctl.commands.toolkit.grammar.spec import JSON, Command, Group


def _verb(group: Group, old: str, new: str, *aliases: str) -> Command:
    """The command `old` of a group under the preview's name for it."""
    command = group.find(old)
    assert isinstance(command, Command), old
    return replace(command, name=new, aliases=aliases, examples=())


def _all_verbs() -> tuple[Command | Group, ...]:
    streams, consumers = stream.GROUP, consumer.GROUP
    return (
        Command(
            "info",
            "Account information, or a stream's when one is named",
            "jsm.info:info",
            (STREAM,),
            (JSON,),
        ),
        _verb(streams, "ls", "ls", "list"),
        _verb(streams, "report", "report"),
        _verb(streams, "add", "add", "create", "new"),
        _verb(streams, "edit", "edit", "update"),
        _verb(streams, "rm", "rm", "delete"),
        _verb(streams, "purge", "purge"),
        _verb(streams, "get", "get", "get-msg"),
        _verb(streams, "rmm", "rm-msg", "rmm"),
        _verb(consumers, "add", "add-obs", "new-obs", "add-con"),
        _verb(consumers, "ls", "ls-obs", "list-obs", "ls-con"),
        _verb(consumers, "info", "info-obs", "info-con"),
        _verb(consumers, "report", "report-obs", "report-con"),
        _verb(consumers, "rm", "rm-obs", "delete-obs", "rm-con"),
        _verb(consumers, "next", "next"),
        replace(streams, aliases=("str", "st", "ms", "message-set", "s")),
        replace(consumers, aliases=("con", "obs", "observable", "c")),
    )


GROUP = Group(
    "jsm",
    "JetStream management with the words of the JetStream preview",
    _all_verbs(),
    options=stream.GROUP.options,
)
