"""The benchmarks: what they are called, what their clients do, what their first line lists."""

from enum import Enum

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.humanize import duration, number, size

_STREAM_PUB = "subject multi-subject multi-subject-max multi-subject-randomize batch stream sleep"


class Benchmark(Enum):
    """Label, function of a client, what is said of it, its letter, whether messages are shared.

    Then the facts of the first line; `stored` stands for those of a stream that is made.
    """

    CORE_PUB = (
        *("Core NATS publisher", "publishers:core_publisher", "publishing", "P", True),
        "subject multi-subject multi-subject-max multi-subject-randomize sleep",
    )
    CORE_SUB = (
        *("Core NATS subscriber", "receivers:core_subscriber", "expecting", "S", False),
        "subject multi-subject",
    )
    REQUEST = (
        *("Core NATS service requester", "publishers:requester", "requesting", "P", True),
        "subject sleep",
    )
    SERVE = ("Core NATS service server", "receivers:server", "", "?", False, "subject sleep")
    JS_SYNC = (
        *("JetStream synchronous publisher", "publishers:stream_sync_publisher"),
        *("publishing", "P", True, f"{_STREAM_PUB} purge stored"),
    )
    JS_ASYNC = (
        *("JetStream asynchronous publisher", "publishers:stream_async_publisher"),
        *("publishing", "P", True, f"{_STREAM_PUB} purge stored"),
    )
    JS_ATOMIC = (
        *("JetStream atomic batch publisher", "publishers:stream_atomic_publisher"),
        *("publishing", "P", True, f"{_STREAM_PUB} purge stored"),
    )
    JS_FAST = (
        *("JetStream fast batch publisher", "publishers:stream_fast_publisher"),
        *("publishing", "P", True, f"{_STREAM_PUB} purge stored"),
    )
    ORDERED = (
        *("JetStream ordered ephemeral consumer", "receivers:consuming", "expecting", "S", False),
        "stream sleep purge filter",
    )
    CONSUME = (
        *("JetStream durable consumer (callback)", "receivers:consuming", "expecting", "S", True),
        "consumer acks double-acked batch filter stream sleep purge",
    )
    FETCH = (
        *("JetStream durable consumer (fetch)", "receivers:fetching", "expecting", "S", True),
        "consumer acks double-acked batch filter stream sleep purge",
    )
    GET_SYNC = (
        *("JetStream synchronous getter", "receivers:sync_getter", "expecting", "S", False),
        "stream sleep",
    )
    GET_BATCH = (
        *("JetStream batched direct getter", "receivers:batch_getter", "expecting", "S", False),
        "batch filter stream sleep",
    )
    KV_PUT = (
        *("JetStream KV putter", "publishers:kv_putter", "publishing", "P", True),
        "bucket sleep purge",
    )
    KV_GET = (
        *("JetStream KV getter", "receivers:kv_getter", "trying to get", "S", True),
        "bucket sleep randomize",
    )

    OLD_ORDERED = (
        "JetStream ordered ephemeral consumer (old API)",
        *("oldjs.receivers:pushed", "expecting", "S", False),
        "multi-subject stream sleep",
    )
    OLD_PUSH = (
        "JetStream durable push consumer (old API)",
        *("oldjs.receivers:pushed", "expecting", "S", True),
        "consumer acked double-acked stream sleep",
    )
    OLD_PULL = (
        "JetStream durable pull consumer (old API)",
        *("oldjs.receivers:pulled", "expecting", "S", True),
        "consumer acked double-acked batch stream sleep",
    )

    @property
    def label(self) -> str:
        """What people call it."""
        return str(self.value[0])

    @property
    def function(self) -> str:
        """What a client does, as `module:name`."""
        return str(self.value[1])

    @property
    def verb(self) -> str:
        """What a client does, in its first line; empty for one without an end."""
        return str(self.value[2])

    @property
    def letter(self) -> str:
        """In a CSV file."""
        return str(self.value[3])

    @property
    def shared(self) -> bool:
        """Whether the clients share the messages; else each gets all of them."""
        return bool(self.value[4])

    @property
    def failure(self) -> str:
        """What the error of a client is called."""
        return "Fatal error" if self in _STREAM_PUBLISHERS else "Error"

    @property
    def facts(self) -> list[str]:
        """What the first line lists."""
        return str(self.value[5]).split()


_STREAM_PUBLISHERS = (
    Benchmark.JS_SYNC,
    Benchmark.JS_ASYNC,
    Benchmark.JS_ATOMIC,
    Benchmark.JS_FAST,
)


def banner(call: Call, kind: Benchmark, total: int, clients: int) -> str:
    """The first line: what is measured, and how."""
    facts = {
        "clients": number(clients),
        "msg-size": size(call.size("size")),
        "msgs": number(total),
    }
    for name in kind.facts:
        if name == "stored":
            facts.update(_stored(call) if call.flag("create") else {})
        elif name != "filter" or call.text("filter") or call.texts("filter"):
            facts[name] = _fact(call, name)
    if call.integer("throughput") > 0:
        facts["throughput"] = number(call.integer("throughput"))
        if call.duration("duration"):
            facts["duration"] = duration(call.duration("duration"))
    listed = ", ".join(f"{key}={facts[key]}" for key in sorted(facts))
    return f"Starting {kind.label} benchmark [{listed}]"


def _fact(call: Call, name: str) -> str:
    if name == "subject":
        return call.text("subject") + (".*" if call.flag("multisubject") else "")
    if name == "filter":
        return call.text("filter") or ",".join(call.texts("filter"))
    flags = {
        "multi-subject": "multisubject",
        "multi-subject-randomize": "multisubjectrandomize",
        "purge": "purge",
        "double-acked": "doubleack",
        "acked": "ack",
    }
    if name in flags:
        return _word(call.flag(flags[name]))
    if name == "sleep":
        return duration(call.duration("sleep"))
    if name in ("multi-subject-max", "batch", "randomize"):
        return number(call.integer(name.replace("-", "")))
    return call.text(name)


def _stored(call: Call) -> dict[str, str]:
    """What a stream is made with."""
    return {
        "dedup-window": duration(call.duration("dedupwindow")),
        "deduplication": _word(call.flag("dedup")),
        "max-bytes": number(call.size("maxbytes")),
        "replicas": str(call.integer("replicas")),
        "storage": call.text("storage"),
    }


def _word(value: bool) -> str:
    return "true" if value else "false"
