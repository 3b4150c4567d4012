"""`stream add` and `edit`: from flags, a file and answers to a configuration."""

from dataclasses import Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsctl.api.cluster import ClusterInfo, Placement
from jsctl.api.codec import decode, wire_of
from jsctl.api.jsontext import of_people
from jsctl.api.stream import (
    ConsumerLimits,
    Republish,
    StreamConfig,
    StreamInfo,
    StreamSource,
    SubjectTransform,
)
from jsctl.api.words import PersistMode
from jsctl.client.manager import as_request
from jsctl.commands.stream.change import confirm_bucket
from jsctl.commands.stream.origins import with_origins
from jsctl.commands.stream.show import show_stream
from jsctl.commands.toolkit.assets.config_files import edited, load_config
from jsctl.commands.toolkit.assets.config_flags import (
    apply_flags,
    differences,
    value_of,
)
from jsctl.commands.toolkit.assets.failing import told_as
from jsctl.commands.toolkit.assets.picking import check_name, stream_of
from jsctl.commands.toolkit.grammar.values import parse_age
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import save
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, UsageError
from jsctl.render.humanize import duration

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

DUPLICATE_WINDOW = "2m0s"
BYTES_WHEN_REQUIRED = "256MB"
NOT_CREATED = "could not create Stream"
INVALID = "configuration validation failed"
REPLICAS_MAX = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt of `add`: the field it fills, its words, and the answer taken by default."""

    attr: str
    text: str
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    yes_means: bool = True
    help: str = ""


QUESTIONS = (
    Question("storage", "Storage", "file", (("file", "file"), ("memory", "memory"))),
    Question("num_replicas", "Replication", "1", help="How many copies, an odd number up to 5"),
    Question(
        "retention",
        "Retention Policy",
        "Limits",
        (("Limits", "limits"), ("Interest", "interest"), ("Work Queue", "work")),
    ),
    Question("discard", "Discard Policy", "Old", (("New", "new"), ("Old", "old"))),
    Question("max_msgs", "Stream Messages Limit", "-1"),
    Question("max_msgs_per_subject", "Per Subject Messages Limit", "-1"),
    Question("max_bytes", "Total Stream Size", "-1"),
    Question("max_age", "Message TTL", "-1"),
    Question("max_msg_size", "Max Message Size", "-1"),
    Question("duplicate_window", "Duplicate tracking time window", DUPLICATE_WINDOW),
    Question("allow_rollup_hdrs", "Allow message Roll-ups", "no"),
    Question("deny_delete", "Allow message deletion", "yes", yes_means=False),
    Question("deny_purge", "Allow purging subjects or the entire stream", "yes", yes_means=False),
)
_ZERO_IS_UNSAID = frozenset(
    {"num_replicas", "max_msgs", "max_msgs_per_subject", "max_bytes", "max_msg_size"}
)
_UNLIMITED = StreamConfig(
    max_consumers=-1,
    max_msgs=-1,
    max_bytes=-1,
    max_msgs_per_subject=-1,
    max_msg_size=-1,
    num_replicas=1,
    allow_direct=True,
)


async def add(call: Call) -> None:
    """Create a stream."""
    alone = call.flag("validate") or bool(call.text("output"))
    async with call.manager(NOT_CREATED) as manager:
        if call.given("config"):
            config = _from_file(call)
        else:
            required = await _bytes_required(manager, sure=not alone)
            config = _asked(call, bytes_required=required)
        if alone:
            _check_alone(call, config)
        check_config(config)
        if call.flag("validate"):
            call.output.print(
                "\nConfiguration is a valid Stream matching "
                "io.nats.jetstream.api.v1.stream_configuration"
            )
            return
        if call.text("output"):
            _save(call.text("output"), config)
            return
        with told_as(NOT_CREATED):
            info = await manager.create_stream(config, level=required_level(config))
    _say(call, f"Stream {config.name} was created\n")
    show_stream(call, info)


async def _bytes_required(manager: "Manager", *, sure: bool) -> bool:
    """Whether streams of the account need a limit. Where none is made, nobody has to answer."""
    try:
        with told_as(NOT_CREATED):
            return (await manager.account_info()).limits.max_bytes_required
    except JsctlError:
        if sure:
            raise
    return False


def _say(call: Call, sentence: str) -> None:
    if call.as_json or call.output.machine:
        call.output.note(sentence.strip())
    else:
        call.output.print(sentence)


def _save(path: str, config: StreamConfig) -> None:
    from jsctl.render.formats import as_json

    save(Path(path), as_json(config))


def _from_file(call: Call) -> StreamConfig:
    config = as_request(load_config(call.text("config"), StreamConfig))
    if call.given("stream"):
        config = replace(config, name=check_name(call.text("stream"), "stream", about=NOT_CREATED))
    return with_flags(call, config)


def _asked(call: Call, *, bytes_required: bool) -> StreamConfig:
    ask = call.prompts.ask
    name = call.text("stream") or ask("Stream Name", check=_name)
    check_name(name, "stream", about=NOT_CREATED)
    config = with_flags(call, replace(_UNLIMITED, name=name))
    replicated = config.mirror is not None or bool(config.sources)
    if not config.subjects and not replicated:
        words = ask(
            "Subjects",
            check=lambda text: _some(text.replace(",", " ").split()),
            help_text="What the stream takes, with spaces or commas between; also --subjects",
        )
        config = replace(config, subjects=tuple(words))
    if bytes_required and config.max_bytes == -1 and call.flag("defaults"):
        config = replace(config, max_bytes=256 * 1024 * 1024)
    by_attr = {declared.name: declared for declared in fields(StreamConfig)}
    for question in QUESTIONS:
        about = wire_of(by_attr[question.attr]).about
        assert about is not None
        said = call.given(about.flag) and not _means_nothing(question.attr, config)
        if said or _does_not_apply(question.attr, config):
            continue
        if question.attr == "max_bytes" and bytes_required:
            question = replace(question, default=BYTES_WHEN_REQUIRED)
        config = _answered(call, config, by_attr[question.attr], question)
    return with_origins(call, config)


def _name(text: str) -> str:
    try:
        return check_name(text, "stream")
    except UsageError as error:
        raise ValueError(str(error)) from None


def _some(words: list[str]) -> list[str]:
    if not words:
        raise ValueError("a value is required")
    return words


def _means_nothing(attr: str, config: StreamConfig) -> bool:
    """No copies, and limits of 0, are as good as not given."""
    return attr in _ZERO_IS_UNSAID and not getattr(config, attr)


def _does_not_apply(attr: str, config: StreamConfig) -> bool:
    if attr == "duplicate_window":
        return config.mirror is not None
    return attr == "max_msgs_per_subject" and not config.subjects


def _answered(
    call: Call, config: StreamConfig, declared: "Field[Any]", question: Question
) -> StreamConfig:
    about = wire_of(declared).about
    assert about is not None
    default = question.default
    if question.attr == "duplicate_window" and 0 < config.max_age < parse_age(default):
        default = duration(config.max_age)
    if default in ("yes", "no"):
        yes = default == "yes"
        if not call.flag("defaults"):
            yes = call.prompts.confirm(question.text, default=yes)
        return _replaced(config, question.attr, yes is question.yes_means)
    words = dict(question.choices)

    def check(text: str) -> object:
        try:
            return value_of(words.get(text, text), declared, about)
        except UsageError as error:
            raise ValueError(str(error)) from None

    if call.flag("defaults"):
        return _replaced(config, question.attr, check(default))
    if words:
        picked = call.prompts.choose(
            question.text, list(words), default=default, prefix="invalid input"
        )
        return _replaced(config, question.attr, check(picked))
    answer: object = call.prompts.ask(
        question.text, default=default, check=check, help_text=question.help or about.help
    )
    return _replaced(config, question.attr, answer)


def _replaced(config: StreamConfig, attr: str, value: object) -> StreamConfig:
    return replace(config, **{attr: value})  # type: ignore[arg-type] # checked by value_of


def with_flags(call: Call, config: StreamConfig) -> StreamConfig:
    """The configuration with all flags given laid over it."""
    config = as_request(apply_flags(call, config))
    for change in (_place, _replicate, _transform, _republish, _limit_consumers):
        config = change(call, config)
    return config


def _place(call: Call, config: StreamConfig) -> StreamConfig:
    if not call.given("tag") and not call.given("cluster"):
        return config
    before = config.placement or Placement()
    cluster = call.text("cluster") if call.given("cluster") else before.cluster
    tags = tuple(filter(None, call.texts("tag"))) if call.given("tag") else before.tags
    return replace(config, placement=Placement(cluster=cluster, tags=tags))


def _replicate(call: Call, config: StreamConfig) -> StreamConfig:
    if call.flag("no-mirror"):
        config = replace(config, mirror=None)
    if call.text("mirror"):
        config = replace(config, mirror=_source(call.text("mirror")))
    if call.given("sources"):
        config = replace(config, sources=tuple(_source(text) for text in call.texts("sources")))
    return config


def _source(text: str) -> StreamSource:
    if not text.lstrip().startswith("{"):
        return StreamSource(name=check_name(text, "stream"))
    try:
        return decode(StreamSource, of_people(text), strict=True)
    except ValueError as error:
        raise UsageError(f"invalid mirror or source {text!r}: {error}") from None


def _transform(call: Call, config: StreamConfig) -> StreamConfig:
    if call.flag("no-transform"):
        return replace(config, subject_transform=None)
    ends = call.text("transform-source"), call.text("transform-destination")
    if not any(ends):
        return config
    if not all(ends):
        raise UsageError("must specify both --transform-source and --transform-destination")
    return replace(config, subject_transform=SubjectTransform(src=ends[0], dest=ends[1]))


def _republish(call: Call, config: StreamConfig) -> StreamConfig:
    if call.flag("no-republish"):
        return replace(config, republish=None)
    ends = call.text("republish-source"), call.text("republish-destination")
    if not any(ends) and not call.given("republish-headers"):
        return config
    if not all(ends):
        when = " when using --headers-only" if call.given("republish-headers") else ""
        raise UsageError(f"must specify both --republish-source and --republish-destination{when}")
    made = Republish(src=ends[0], dest=ends[1], headers_only=call.flag("republish-headers"))
    return replace(config, republish=made)


def _limit_consumers(call: Call, config: StreamConfig) -> StreamConfig:
    inactive, pending = "limit-consumer-inactive", "limit-consumer-max-pending"
    if not call.given(inactive) and not call.given(pending):
        return config
    made = ConsumerLimits(
        inactive_threshold=call.duration(inactive, config.consumer_limits.inactive_threshold),
        max_ack_pending=call.integer(pending, config.consumer_limits.max_ack_pending),
    )
    return replace(config, consumer_limits=made)


def required_level(config: StreamConfig) -> int:
    """The API level that a server needs for this configuration; older ones refuse it."""
    if config.allow_batched:
        return 4
    newer = config.allow_msg_counter or config.allow_atomic or config.allow_msg_schedules
    if newer or config.persist_mode is not PersistMode.DEFAULT:
        return 2
    return 1 if config.allow_msg_ttl or config.subject_delete_marker_ttl else 0


def check_config(config: StreamConfig) -> None:
    """What no server makes; raises UsageError."""
    _check_meaning(config)
    if wrong := _wrong_limit(config):
        raise UsageError(f"{NOT_CREATED}: {INVALID}: {wrong}")


def _check_meaning(config: StreamConfig) -> None:
    if config.mirror is not None and config.subjects:
        raise UsageError("mirrors cannot listen for messages on subjects")
    if config.num_replicas < 1:
        raise UsageError("replicas should be >= 1")


def _wrong_limit(config: StreamConfig) -> str:
    """What is wrong with a number of a new stream; empty if nothing is."""
    if config.num_replicas > REPLICAS_MAX:
        return f"/num_replicas: must be <= {REPLICAS_MAX} but found {config.num_replicas}"
    return _wrong_number(config)


def _wrong_number(config: StreamConfig) -> str:
    for limit in ("max_msgs", "max_msgs_per_subject", "max_bytes", "max_consumers"):
        if (found := getattr(config, limit)) < -1:
            return f"/{limit}: must be >= -1 but found {found}"
    return ""


def _check_alone(call: Call, config: StreamConfig) -> None:
    """What a server would say of a configuration that none is to see; it is shown before."""
    _check_meaning(config)
    if call.flag("validate"):
        call.output.json(config)
    if wrong := _wrong_limit(config):
        raise UsageError(f"Validation Failed: {wrong}")
    if ">" in config.subjects and not config.no_ack:
        raise UsageError(
            "Validation Failed: subjects cannot be '>' when acknowledgement is enabled",
            hints=("--no-ack turns it off",),
        )


async def edit(call: Call) -> int | None:
    """Change a stream; with --dry-run 1 when something would change."""
    async with call.manager() as manager:
        info = await stream_of(call, manager)
        old = as_request(info.config)
        new = old
        if call.given("config"):
            new = replace(as_request(load_config(call.text("config"), StreamConfig)), name=old.name)
        if call.flag("interactive"):
            what = f"could not create new configuration for Stream {old.name}"
            new = edited(call, new, StreamConfig, what)
            if new.name != old.name:
                raise UsageError(f"{what}: a stream keeps its name")
        new = with_flags(call, new)
        _check_meaning(new)
        if wrong := _wrong_number(new):
            raise UsageError(f"could not edit Stream {old.name}: {INVALID}: {wrong}")
        lines = differences(old, new)
        if not lines:
            call.output.say("No difference in configuration")
            return 0
        if not call.as_json:
            call.output.say("\n".join(["Differences (-old +new):", *lines]))
        if call.flag("dry-run"):
            return 1
        confirm_bucket(call, old.name)
        if not call.confirm(f"Really edit Stream {old.name}"):
            return 0
        info = await _updated(call, manager, new)
    if not call.as_json:
        call.output.say(f"Stream {old.name} was updated\n")
    show_stream(call, info)
    return 0


async def _updated(call: Call, manager: "Manager", config: StreamConfig) -> StreamInfo:
    """Updates; with `--wait` returns when the replicas have caught up."""
    name = config.name
    with told_as(f"could not edit Stream {name}"):
        await manager.update_stream(config, level=required_level(config))
    if not call.given("wait"):
        return await manager.stream_info(name)  # a server alone does not answer with its cluster
    # Not at the top: the flags of this module are shown by help, and these load more than it.
    from jsctl.commands.toolkit.assets.catching_up import wait_for_replicas
    from jsctl.commands.toolkit.assets.moving import LOOK_NS

    quick = manager.with_timeout(LOOK_NS)

    async def look() -> ClusterInfo | None:
        return (await quick.stream_info(name)).cluster

    await wait_for_replicas(call, look, config.num_replicas, f'stream "{name}"')
    return await manager.stream_info(name)
