"""Which streams `find` and `cluster balance` are about."""

from collections.abc import Callable, Sequence
from time import time_ns

from jsctl.api.codec import encode
from jsctl.api.stream import StreamInfo
from jsctl.api.times import parse_time
from jsctl.commands.toolkit.content.expressions import OF_ASSETS, compiled
from jsctl.commands.toolkit.content.patterns import covers, searcher
from jsctl.commands.toolkit.invocation.call import Call

LEVEL_KEY = "_nats.req.level"
Test = Callable[[StreamInfo], bool | None]
"""None: neither so nor not so, as the leader of a stream that has no group."""


def chosen(call: Call, infos: Sequence[StreamInfo]) -> list[StreamInfo]:
    """Streams that pass every test asked for; with `--invert` those that fail every one.

    Raises UsageError for wrong expressions.
    """
    wanted = not call.flag("invert")
    found = list(infos)
    if call.text("expression"):
        matches = compiled(call.text("expression"), names=OF_ASSETS)
        found = [info for info in found if matches(environment(info))]
    for test in tests(call):
        found = [info for info in found if test(info) is wanted]
    return found


def environment(info: StreamInfo) -> dict[str, object]:
    """What expressions can ask for."""
    document = encode(info)
    return {"config": document["config"], "state": document["state"], "info": document}


def tests(call: Call) -> list[Test]:
    """One for each flag that was given."""
    return [*_ages(call), *_sizes(call), *_places(call), *_kinds(call)]


def _ages(call: Call) -> list[Test]:
    now = time_ns()
    found: list[Test] = []
    if (age := call.duration("created")) > 0:
        found.append(lambda info: now - parse_time(info.created) >= age)
    if (idle := call.duration("idle")) > 0:
        found.append(lambda info: now - parse_time(info.state.last_ts) > idle)
    return found


def _sizes(call: Call) -> list[Test]:
    found: list[Test] = []
    if call.flag("empty"):
        found.append(lambda info: not info.state.messages)
    most = call.integer("consumers", -1)
    if most >= 0:
        found.append(lambda info: info.state.consumer_count <= most)
    if replicas := call.integer("replicas"):
        found.append(lambda info: info.config.num_replicas <= replicas)
    if level := call.integer("api-level"):
        found.append(lambda info: _level(info) >= level)
    return found


def _places(call: Call) -> list[Test]:
    found: list[Test] = []
    if cluster := call.text("cluster"):
        in_cluster = searcher(cluster, "cluster")
        found.append(lambda info: info.cluster is not None and in_cluster(info.cluster.name))
    if server := call.text("server-name"):
        on_server = searcher(server, "server-name")
        found.append(lambda info: any(map(on_server, servers_of(info))))
    if leader := call.text("leader"):
        found.append(lambda info: info.cluster.leader == leader if info.cluster else None)
    return found


def _kinds(call: Call) -> list[Test]:
    found: list[Test] = []
    if subject := call.text("subject"):
        some = all if call.flag("invert") else any
        found.append(
            lambda info: (
                some(covers(subject, one) for one in info.config.subjects)
                if info.config.subjects
                else None
            )
        )
    if call.flag("sourced"):
        found.append(lambda info: bool(info.config.sources))
    if call.flag("mirrored"):
        found.append(lambda info: info.config.mirror is not None)
    return found


def servers_of(info: StreamInfo) -> list[str]:
    """Who has a replica, the leader first."""
    if info.cluster is None:
        return []
    return [info.cluster.leader, *(peer.name for peer in info.cluster.replicas)]


def _level(info: StreamInfo) -> int:
    text = info.config.metadata.get(LEVEL_KEY, "")
    return int(text) if text.isascii() and text.isdigit() else 0
