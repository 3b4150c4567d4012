"""The `accounts` block: users, exports, imports, mappings and JetStream limits of accounts."""

from collections.abc import Callable

from jsctl.broker.conf.fields import (
    Field,
    Reading,
    Section,
    array,
    boolean,
    count,
    in_range,
    inert,
    integer,
    make,
    mapping,
    named,
    one_of,
    positive,
    rejected,
    size,
    text,
    texts,
    wrong_kind,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.users import permissions, users, with_defaults
from jsctl.broker.errors import ConfigError
from jsctl.broker.nkey import KeyKind, decode
from jsctl.broker.options import (
    GLOBAL_ACCOUNT,
    SYSTEM_ACCOUNT,
    UNLIMITED,
    AccountJetStream,
    AccountLimits,
    AccountOptions,
    ExportOptions,
    ImportOptions,
    MappingOptions,
    MappingTarget,
)
from jsctl.broker.subject.validity import is_valid_subject
from jsctl.dataclass import replace

RESPONSE_TYPES = {"single": "singleton", "chunk": "chunked"}
percent = in_range(0, 100)


def subject(node: ConfigNode, reading: Reading) -> str:
    """A valid subject."""
    value = text(node, reading)
    if not is_valid_subject(value.encode()):
        raise node.error(f"{value!r} is not a valid subject", "tokens are separated by dots")
    return value


def account_jetstream(node: ConfigNode, reading: Reading) -> AccountJetStream | None:
    """`enabled`, `disabled`, a boolean, or a map of limits."""
    if isinstance(node.content, bool):
        return AccountJetStream() if node.content else None
    if isinstance(node.content, str):
        state = one_of("enabled", "enable", "disabled", "disable")(node, reading)
        return AccountJetStream() if str(state).startswith("enable") else None
    return make(AccountJetStream, JETSTREAM.read(node, reading, "jetstream of an account"))


def bytes_required(node: ConfigNode, reading: Reading) -> bool:
    """`max_bytes_required: true`; older files give a number here."""
    return bool(node.content) if isinstance(node.content, bool | int) else boolean(node, reading)


def latency(node: ConfigNode, reading: Reading) -> tuple[str, int]:
    """(subject, percent): a subject, or a map of `sampling` and `subject`."""
    if isinstance(node.content, str):
        return (subject(node, reading), 100)
    found = LATENCY.read(node, reading, "latency")
    if "subject" not in found:
        raise node.error("latency needs a subject", "add one")
    return (str(found["subject"]), int(str(found.get("sampling", 100))))


def sampling(node: ConfigNode, reading: Reading) -> int:
    """Percent as a number, as "25%", or "headers" (0)."""
    if isinstance(node.content, str):
        if node.content.strip().lower() == "headers":
            return 0
        digits = node.content.strip().removesuffix("%")
        if digits.isdecimal() and len(digits) <= 3 and 1 <= int(digits) <= 100:
            return int(digits)
        raise node.error(f"{node.content!r} is no sampling", 'write 1 to 100 or "headers"')
    return int(str(in_range(1, 100)(node, reading)))


def export(node: ConfigNode, reading: Reading) -> ExportOptions:
    """One export: exactly one of `stream` and `service`."""
    found = EXPORT.read(node, reading, "an export")
    service, stream = found.pop("service", None), found.pop("stream", None)
    one_direction(node, service, stream)
    check_position(node, str(service or stream), found.get("account_token_position", 0))
    if "latency" in found:
        reading.no_effect(node, '"latency"', "latency is not sampled")
        found["latency_subject"], found["latency_sampling"] = latency_pair(found.pop("latency"))
    return make(ExportOptions, {**found, "subject": service or stream, "service": bool(service)})


def importers(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """The accounts that may import; without any of them all may, and none is to be named."""
    found = texts(node, reading)
    if not found:
        raise node.error("it is empty: every account could import that", "name one, or remove it")
    return found


def check_position(node: ConfigNode, exported: str, position: object) -> None:
    """Raise ConfigError unless the token that has to name the importer is a wildcard."""
    tokens = ["", *exported.split(".")]
    if not isinstance(position, int) or position == 0:
        return
    if position >= len(tokens) or tokens[position] != "*":
        raise node.error(
            f"account_token_position {position} of {exported!r} is no '*'",
            "give the number of a token that is '*'; the first is 1",
        )


def latency_pair(value: object) -> tuple[object, object]:
    """The two halves of what `latency` has read."""
    assert isinstance(value, tuple)
    return (value[0], value[1])


def one_direction(node: ConfigNode, service: object, stream: object) -> None:
    """Raise ConfigError unless exactly one is given."""
    if bool(service) == bool(stream):
        what = "both a stream and a service" if service else "neither a stream nor a service"
        raise node.error(f"found {what}", 'give exactly one of "stream" and "service"')


def imported(node: ConfigNode, reading: Reading) -> ImportOptions:
    """One import: exactly one of `stream` and `service`, each `{account, subject}`."""
    found = IMPORT.read(node, reading, "an import")
    service, stream = found.pop("service", None), found.pop("stream", None)
    one_direction(node, service, stream)
    source = service or stream
    assert isinstance(source, dict)
    if found.get("to") and found.get("prefix"):
        raise node.error("a stream import can not have both 'prefix' and 'to'", "remove one")
    if service and "allow_trace" in found:
        raise node.error("allow_trace is only for stream imports", "remove it")
    if service and not found.get("to"):
        found["to"] = source["subject"]
    return make(ImportOptions, {**found, **source, "service": bool(service)})


def import_source(node: ConfigNode, reading: Reading) -> dict[str, object]:
    """`{account, subject}`, both needed."""
    found = IMPORT_SOURCE.read(node, reading, "the source of an import")
    if not found.get("account") or not found.get("subject"):
        raise node.error("expected an account name and a subject", "give both")
    return found


def each(
    read: Callable[[ConfigNode, Reading], object],
) -> Callable[[ConfigNode, Reading], tuple[object, ...]]:
    """A reader of arrays whose elements `read` takes; each bad element is one error."""

    def read_all(node: ConfigNode, reading: Reading) -> tuple[object, ...]:
        found: list[object] = []
        for item in array(node):
            try:
                found.append(read(item, reading))
            except ConfigError as error:
                reading.errors.append(error)
        return tuple(found)

    return read_all


def imports(node: ConfigNode, reading: Reading) -> tuple[object, ...]:
    """The imports of an account. One account would be asked twice by one request."""
    found = each(imported)(node, reading)
    asked: set[tuple[str, str]] = set()
    for one in found:
        if isinstance(one, ImportOptions) and one.service:
            key = (one.account, one.to)
            if key in asked:
                raise node.error(
                    f"duplicate service import subject {one.to!r} from {one.account!r}",
                    'keep one of them, or give the other one another "to"',
                )
            asked.add(key)
    return found


def mapping_target(node: ConfigNode, reading: Reading) -> MappingTarget:
    """One `{destination, weight, cluster}`."""
    found = make(MappingTarget, TARGET.read(node, reading, "a mapping"))
    if not found.destination:
        raise node.error("a mapping needs a destination", "add one")
    return found


def weight(node: ConfigNode, reading: Reading) -> int:
    """0 to 100, as a number or as "50%"."""
    if isinstance(node.content, str):
        digits = node.content.strip().removesuffix("%")
        if not digits.isdecimal() or len(digits) > 3 or int(digits) > 100:
            raise node.error(f"{node.content!r} is no weight", 'write 0 to 100, or "50%"')
        return int(digits)
    return int(str(percent(node, reading)))


def mappings(node: ConfigNode, reading: Reading) -> tuple[MappingOptions, ...]:
    """Subject mappings in the order of the file: the first that matches counts."""
    found: list[MappingOptions] = []
    for source, value in mapping(node).items():
        if value.variable and not is_valid_subject(source.encode()):
            continue
        if not is_valid_subject(source.encode()):
            raise value.error(f"{source!r} is not a valid subject", "correct the mapping's source")
        found.append(MappingOptions(source, mapping_targets(value, reading)))
    return tuple(found)


def mapping_targets(node: ConfigNode, reading: Reading) -> tuple[MappingTarget, ...]:
    """Destinations of one source; their weights add up to 100 at most for each cluster."""
    if isinstance(node.content, str):
        return (MappingTarget(node.content),)
    items = node.content if isinstance(node.content, list) else [node]
    targets = tuple(mapping_target(item, reading) for item in items)
    totals: dict[str, int] = {}
    for target in targets:
        totals[target.cluster] = totals.get(target.cluster, 0) + target.weight
    if any(total > 100 for total in totals.values()):
        raise node.error("the weights add up to more than 100", "reduce them")
    return targets


def trace(node: ConfigNode, reading: Reading) -> tuple[str, int]:
    """`msg_trace`: a subject, or `{dest, sampling}`."""
    if isinstance(node.content, str):
        return (literal(node, reading), 100)
    found = TRACE.read(node, reading, "msg_trace")
    return (str(found.get("dest", "")), int(str(found.get("sampling", 100))))


def account(name: str, node: ConfigNode, reading: Reading) -> AccountOptions:
    """One account."""
    found = ACCOUNT.read(node, reading, f'account "{name}"')
    if "trace" in found:
        found["trace_subject"], found["trace_sampling"] = latency_pair(found.pop("trace"))
    result = make(AccountOptions, {"name": name, **found})
    if result.nkey and decode(result.nkey, KeyKind.ACCOUNT) is None:
        raise node.error("not a valid public nkey for an account", "it begins with A")
    return replace(result, users=with_defaults(result.users, result.default_permissions))


def accounts(node: ConfigNode, reading: Reading) -> tuple[AccountOptions, ...]:
    """The `accounts` block: a map, or a list of names."""
    if isinstance(node.content, list):
        names = [(item, text(item, reading)) for item in node.content]
        for item, name in names:
            check_name(item, name)
        if len({name for _, name in names}) < len(names):
            raise node.error("an account is named twice", "keep one of them")
        return tuple(AccountOptions(name=name) for _, name in names)
    found: list[AccountOptions] = []
    for name, value in mapping(node).items():
        if value.variable:
            continue  # Written down here to be referred to, such as permissions of many users.
        try:
            check_name(value, name)
            if value.again:
                raise value.error("it is given twice", "put both into one")
            found.append(account(name, value, reading))
        except ConfigError as error:
            reading.errors.append(named(error, f'account "{name}"'))
    check_references(node, found, reading)
    return tuple(found)


def check_name(node: ConfigNode, name: str) -> None:
    """Raise ConfigError for a name that is taken or unusable."""
    if name == GLOBAL_ACCOUNT:
        raise node.error(f"{name!r} is a reserved account name", "choose another one")
    if not name or any(char.isspace() for char in name):
        raise node.error(f"{name!r} is no account name", "no spaces, at least one character")


def check_references(node: ConfigNode, found: list[AccountOptions], reading: Reading) -> None:
    """Note users that two accounts share and imports from accounts that do not exist."""
    owners: dict[str, str] = {}
    names = {entry.name for entry in found} | {GLOBAL_ACCOUNT, SYSTEM_ACCOUNT}
    unknown = [
        (entry.name, name)
        for entry in found
        for item in entry.exports
        for name in item.accounts
        if name not in names
    ]
    for owner, name in unknown:
        reading.errors.append(
            node.error(
                f'account "{owner}" exports to "{name}", which is unknown',
                "declare that account or correct the name",
            )
        )
    for entry in found:
        for user in entry.users:
            key = user.name or user.nkey
            if key in owners:
                where = f'accounts "{owners[key]}" and "{entry.name}"'
                reading.errors.append(
                    node.error(f"duplicate user {key!r} detected in {where}", "rename one")
                )
            owners[key] = entry.name
        for item in entry.imports:
            if item.account not in names:
                reading.errors.append(
                    node.error(
                        f'account "{entry.name}" imports from "{item.account}", which is unknown',
                        "declare that account or correct the name",
                    )
                )


def literal(node: ConfigNode, reading: Reading) -> str:
    """A subject to publish to: no wildcards."""
    value = subject(node, reading)
    if "*" in value or ">" in value:
        raise node.error(f"{value!r} may not have wildcards", "write a literal subject")
    return value


def response_type(node: ConfigNode, reading: Reading) -> str:
    """singleton, stream, chunked."""
    value = text(node, reading).lower()
    value = RESPONSE_TYPES.get(value, value)
    if value not in ("singleton", "stream", "chunked"):
        raise node.error(f"unknown response type {value!r}", "write singleton, stream or chunked")
    return value


def account_limits(node: ConfigNode, reading: Reading) -> AccountLimits:
    """The `limits` block of an account."""
    if not isinstance(node.content, dict):
        raise wrong_kind(node, "a map { ... }")
    return make(AccountLimits, LIMITS.read(node, reading, "limits"))


def stream_count(node: ConfigNode, reading: Reading) -> int:
    """A count; 0 and less mean unlimited."""
    value = integer(node, reading)
    return value if value > 0 else UNLIMITED


LATENCY = Section(
    Field(("sampling",), "sampling", sampling), Field(("subject",), "subject", literal)
)
TRACE = Section(
    Field(("dest", "destination"), "dest", literal), Field(("sampling",), "sampling", sampling)
)
TARGET = Section(
    Field(("destination", "dest"), "destination", text),
    Field(("weight",), "weight", weight),
    Field(("cluster",), "cluster", text),
)
EXPORT = Section(
    Field(("stream",), "stream", subject),
    Field(("service",), "service", subject),
    Field(("accounts",), "accounts", importers),
    Field(("response_type", "response"), "response_type", response_type),
    Field(
        ("response_threshold", "threshold", "response_max_time", "response_time"),
        "response_threshold_ns",
        positive(ExportOptions().response_threshold_ns),
    ),
    Field(("latency",), "latency", latency),
    Field(("account_token_position",), "account_token_position", count),
    Field(("allow_trace",), "allow_trace", boolean),
    once=True,
)
IMPORT_SOURCE = Section(
    Field(("account",), "account", text),
    Field(("subject",), "subject", subject),
    once=True,
)
IMPORT = Section(
    Field(("stream",), "stream", import_source),
    Field(("service",), "service", import_source),
    Field(("prefix",), "prefix", text),
    Field(("to",), "to", text),
    Field(("share",), "share", boolean),
    Field(("allow_trace",), "allow_trace", boolean),
    once=True,
)
JETSTREAM = Section(
    Field(("max_memory", "max_mem", "mem", "memory"), "memory_bytes_max", size),
    Field(("max_store", "max_file", "max_disk", "store", "disk"), "store_bytes_max", size),
    Field(("max_streams", "streams"), "streams_max", stream_count),
    Field(("max_consumers", "consumers"), "consumers_max", stream_count),
    Field(
        ("max_bytes_required", "max_stream_bytes", "max_bytes"),
        "stream_bytes_required",
        bytes_required,
    ),
    Field(("mem_max_stream_bytes", "memory_max_stream_bytes"), "memory_stream_bytes_max", size),
    Field(("disk_max_stream_bytes", "store_max_stream_bytes"), "store_stream_bytes_max", size),
    Field(("max_ack_pending",), "ack_pending_max", integer),
    inert(Field(("cluster_traffic",), "cluster_traffic", one_of("system", "owner"))),
)
LIMITS = Section(
    Field(("max_connections", "max_conn"), "connections_max", integer),
    Field(("max_subscriptions", "max_subs"), "subscriptions_max", integer),
    rejected(
        "max_payload",
        "max_pay",
        why="messages are limited for the whole server alone",
        remedy="use max_payload at the top level",
    ),
    Field(("max_leafnodes", "max_leafs"), "leafnodes_max", integer),
    once=True,
)
ACCOUNT = Section(
    Field(("users",), "users", users),
    Field(("nkey",), "nkey", text),
    Field(("exports",), "exports", each(export)),
    Field(("imports",), "imports", imports),
    Field(("jetstream",), "jetstream", account_jetstream),
    Field(("default_permissions",), "default_permissions", permissions),
    Field(("mappings", "maps"), "mappings", mappings),
    Field(("limits",), "limits", account_limits),
    Field(("msg_trace", "trace_dest"), "trace", trace),
    once=True,
)
