"""`consumer add`, `edit` and `copy`: from flags, a file and answers to a configuration."""

from dataclasses import fields, replace
from pathlib import Path

from jsctl.api.codec import wire_of
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.times import format_duration, format_time, parse_duration
from jsctl.api.words import AckPolicy, DeliverPolicy, PriorityPolicy
from jsctl.client.manager import without_server_metadata
from jsctl.commands.consumer.change import parse_until
from jsctl.commands.consumer.show import show_consumer
from jsctl.commands.toolkit.assets.config_files import edited, load_config
from jsctl.commands.toolkit.assets.config_flags import (
    apply_flags,
    differences,
    value_of,
)
from jsctl.commands.toolkit.assets.failing import told_as
from jsctl.commands.toolkit.assets.picking import TO_LOOK_IN, check_name, consumer_of, pick_stream
from jsctl.commands.toolkit.grammar.values import is_count, parse_whole
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import save
from jsctl.errors import UsageError

LINEAR = "linear"
NOT_CREATED = "Consumer creation failed"
START_HELP = "The first message that is delivered, by its place or its age; also --deliver"
MILLISECOND_NS = 1_000_000
REPLICAS_MAX = 5
_SKIP = ("filter", "sample", "wait", "max-pending")
_GROUPS = (
    ("pinned-groups", PriorityPolicy.PINNED_CLIENT, 2),
    ("overflow-groups", PriorityPolicy.OVERFLOW, 1),
    ("prioritized-groups", PriorityPolicy.PRIORITIZED, 2),
)


async def add(call: Call) -> None:
    """Create a consumer."""
    async with call.manager() as manager:
        stream = await pick_stream(call, manager, why=TO_LOOK_IN)
        config = _from_file(call) if call.given("config") else _asked(call)
        check_config(config)
        shown = replace(config, name="") if config.durable_name else config
        if call.flag("validate"):
            call.output.json(shown)
            _check_alone(config)
            call.output.print("\nConfiguration is a valid Consumer")
            return
        if call.text("output"):
            from jsctl.render.formats import as_json

            _check_alone(config)
            save(Path(call.text("output")), as_json(shown))
            return
        with told_as(NOT_CREATED):
            info = await manager.create_consumer(
                stream, config, action="", level=required_level(config)
            )
    show_consumer(call, info)


def required_level(config: ConsumerConfig) -> int:
    """The API level that a server needs for this configuration; older ones refuse it."""
    if config.ack_policy is AckPolicy.FLOW_CONTROL:
        return 4
    levels = {policy: level for _, policy, level in _GROUPS}
    return max(levels.get(config.priority_policy, 0), 1 if config.pause_until else 0)


def _from_file(call: Call) -> ConsumerConfig:
    config = load_config(call.text("config"), ConsumerConfig)
    config = replace(config, metadata=without_server_metadata(config.metadata))
    if call.given("consumer"):
        name = _checked(call.text("consumer"))
        config = replace(config, durable_name=name, name=name)
    return with_flags(call, config)


def _checked(name: str) -> str:
    """Of a consumer that is to be made. Raises UsageError."""
    if set(name) & set(".*>"):
        raise UsageError("durable name can not contain '.', '*', '>'")
    return check_name(name, "consumer", about=NOT_CREATED)


def _asked(call: Call) -> ConsumerConfig:
    ask, defaults = call.prompts.ask, call.flag("defaults")
    name = call.text("consumer")
    if not name and not call.flag("ephemeral"):
        name = ask(
            "Consumer name",
            check=_name,
            help_text="What the consumer is called; also the second argument",
            prefix="could not request durable name",
        )
    durable = "" if call.flag("ephemeral") else _checked(name)
    target = call.text("target")
    if not target and not call.flag("pull"):
        target = ask(
            "Delivery target (empty for Pull Consumers)",
            check=str,
            help_text="A subject that messages are sent to; also --target, or --pull for none",
            prefix="could not request delivery target",
        )
    config = ConsumerConfig(
        name=name,
        durable_name=durable,
        deliver_subject=target,
        ack_policy=AckPolicy.NONE if target and not call.flag("pull") else AckPolicy.EXPLICIT,
        max_deliver=-1,
    )
    config = with_flags(call, config)
    config = config if defaults else _more_questions(call, config)
    acked = config.ack_policy is not AckPolicy.NONE
    if acked and config.backoff and config.max_deliver in (-1, 0):
        config = replace(config, max_deliver=len(config.backoff) + 1)
    return config


def _name(text: str) -> str:
    try:
        return check_name(text, "consumer")
    except UsageError as error:
        raise ValueError(str(error)) from None


_QUESTIONS = (
    ("deliver_group", "Delivery Queue Group", "", "push", "request delivery group"),
    (
        "deliver_policy",
        "Start policy (all, new, last, subject, 1h, msg sequence)",
        "all",
        "",
        "request start policy",
    ),
    ("ack_policy", "Acknowledgment policy", "", "", "ask acknowledgement policy"),
    ("replay_policy", "Replay policy", "instant", "", "ask replay policy"),
    (
        "filter_subjects",
        "Filter Stream by subjects (blank for all)",
        "",
        "",
        "ask for filtering subject",
    ),
    (
        "max_deliver",
        "Maximum Allowed Deliveries",
        "-1",
        "acked",
        "ask for maximum allowed deliveries",
    ),
    (
        "max_ack_pending",
        "Maximum Acknowledgments Pending",
        "0",
        "acked",
        "ask for maximum outstanding acknowledgements",
    ),
    ("idle_heartbeat", "Idle Heartbeat", "0s", "push", "ask for idle heartbeat"),
    ("flow_control", "Enable Flow Control, ie --flow-control", "no", "push", "ask flow control"),
    ("headers_only", "Deliver headers only without bodies", "no", "", "ask headers only"),
)
"""Field, question, default, which consumers it is for, and what could not be done without an
answer."""


def _more_questions(call: Call, config: ConsumerConfig) -> ConsumerConfig:
    for attr, text, default, only, what in _QUESTIONS:
        prefix = f"could not {what}"
        if (only == "push" and not config.deliver_subject) or (
            only == "acked" and config.ack_policy is AckPolicy.NONE
        ):
            continue
        if attr != "deliver_policy":
            config = _answered(call, config, attr, (text, default, prefix))
        elif not call.given("deliver"):
            answer = call.prompts.ask(
                text, default=default, check=str, help_text=START_HELP, prefix=prefix
            )
            config = starting(config, answer)
    if config.ack_policy is not AckPolicy.NONE and not call.given("backoff"):
        config = replace(config, backoff=_asked_backoff(call))
    return _filtered(_single_filter(config))


def _answered(
    call: Call, config: ConsumerConfig, attr: str, question: tuple[str, str, str]
) -> ConsumerConfig:
    """With the answer for a field, which is not asked for where its flag is given."""
    text, default, prefix = question
    declared = next(one for one in fields(ConsumerConfig) if one.name == attr)
    about = wire_of(declared).about
    assert about is not None
    if call.given(about.flag):
        return config
    ask = call.prompts.ask
    value: object

    def check(answer: str) -> object:
        try:
            return value_of(answer, declared, about)
        except UsageError as error:
            raise ValueError(str(error)) from None

    if default == "no":
        value = call.prompts.confirm(text, prefix=prefix)
    elif attr == "filter_subjects":
        answer = ask(text, check=str, help_text=about.help, prefix=prefix)
        value = tuple(answer.replace(",", " ").split())
        config = replace(config, filter_subject="")
    elif words := [word for word, _ in about.choices]:
        start = default or config.ack_policy.value
        chosen = call.prompts.choose(text, words, default=start, prefix=prefix)
        value = value_of(chosen, declared, about)
    else:
        value = ask(text, default=default, check=check, help_text=about.help, prefix=prefix)
    return replace(config, **{attr: value})  # type: ignore[arg-type] # by value_of


def _filtered(config: ConsumerConfig) -> ConsumerConfig:
    """Who wants the last message of each subject says of which, be it of all."""
    last = config.deliver_policy is DeliverPolicy.LAST_PER_SUBJECT
    if last and not config.filter_subject and not config.filter_subjects:
        return replace(config, filter_subject=">")
    return config


def _asked_backoff(call: Call) -> tuple[int, ...]:
    if not call.prompts.confirm("Add a Retry Backoff Policy", prefix=""):
        return ()
    if call.prompts.choose("Backoff policy", (LINEAR, "none"), default="none") != LINEAR:
        return ()
    ask = call.prompts.ask
    shortest_ns = ask("Minimum retry time", default="1m", check=parse_duration)
    longest_ns = ask("Maximum retry time", default="10m", check=parse_duration)
    steps = ask("Number of steps to generate in the policy", default="20", check=parse_whole)
    return linear_backoff(steps, shortest_ns, longest_ns)


def with_flags(call: Call, config: ConsumerConfig) -> ConsumerConfig:
    """The configuration with all flags given laid over it."""
    config = apply_flags(call, config, skip=_SKIP)
    config = replace(config, metadata=without_server_metadata(config.metadata))
    if call.given("filter"):
        filters = tuple(one for text in call.texts("filter") for one in text.split(","))
        config = replace(config, filter_subject="", filter_subjects=filters)
        config = _single_filter(config)
    if call.given("sample"):
        config = replace(config, sample_freq=_percent(call.integer("sample")))
    if call.integer("max-pending", -1) != -1:  # which means that it is not given
        config = replace(config, max_ack_pending=call.integer("max-pending"))
    if call.duration("wait", -1) >= 0:
        config = replace(config, ack_wait=call.duration("wait"))
    if call.text("deliver"):
        config = _filtered(starting(config, call.text("deliver")))
    if call.given("pause"):
        config = replace(config, pause_until=parse_until(call.text("pause")))
    return _with_groups(call, _with_backoff(call, config))


def _percent(sample: int) -> str:
    if sample > 100:
        raise UsageError("sample percent is not between 0 and 100")
    return str(sample) if sample > 0 else ""


def _single_filter(config: ConsumerConfig) -> ConsumerConfig:
    if len(config.filter_subjects) == 1:
        return replace(config, filter_subject=config.filter_subjects[0], filter_subjects=())
    return config


def starting(config: ConsumerConfig, text: str) -> ConsumerConfig:
    """The start a person named: a word, a sequence, or how long ago; raises UsageError."""
    words = {
        "all": DeliverPolicy.ALL,
        "new": DeliverPolicy.NEW,
        "last": DeliverPolicy.LAST,
        "next": DeliverPolicy.NEW,
        "subject": DeliverPolicy.LAST_PER_SUBJECT,
        "last_per_subject": DeliverPolicy.LAST_PER_SUBJECT,
    }
    if text in words:
        return replace(config, deliver_policy=words[text])
    if is_count(text):
        policy = DeliverPolicy.BY_START_SEQUENCE
        return replace(config, deliver_policy=policy, opt_start_seq=int(text))
    try:
        from time import time_ns

        start = format_time(time_ns() - parse_duration(text))
    except ValueError:
        raise UsageError(f"could not parse {text!r} as a start policy") from None
    return replace(config, deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=start)


def _with_backoff(call: Call, config: ConsumerConfig) -> ConsumerConfig:
    if call.text("backoff") != LINEAR:
        return replace(config, backoff=()) if call.given("backoff") else config
    steps = call.integer("backoff-steps", 10)
    backoff = linear_backoff(steps, call.duration("backoff-min"), call.duration("backoff-max"))
    return replace(config, backoff=backoff)


def linear_backoff(steps: int, shortest_ns: int, longest_ns: int) -> tuple[int, ...]:
    """Waits from the shortest on, each a step longer than the one before; raises UsageError.

    As `nats` has it, the longest is where one step more would lead, and lengths are whole
    milliseconds above the shortest.
    """
    if steps < 1:
        raise UsageError("steps must be more than 0")
    for ns, which in ((shortest_ns, "minimum"), (longest_ns, "maximum")):
        if ns <= 0:
            raise UsageError(f"{which} retry can not be 0")
    shortest_ns, longest_ns = sorted((shortest_ns, longest_ns))
    step_ns = (longest_ns - shortest_ns) // steps
    if not step_ns and shortest_ns != longest_ns:
        between = f"{format_duration(shortest_ns)} and {format_duration(longest_ns)}"
        raise UsageError(f"step range between {between} is too small for {steps} steps")
    return tuple(
        shortest_ns + (step * step_ns + MILLISECOND_NS // 2) // MILLISECOND_NS * MILLISECOND_NS
        for step in range(steps)
    )


def _groups(call: Call, flag: str) -> tuple[str, ...]:
    """Names, also with commas between them; a name with blanks is one that no server takes."""
    return tuple(name for text in call.texts(flag) for name in text.split(","))


def _with_groups(call: Call, config: ConsumerConfig) -> ConsumerConfig:
    given = [flag for flag, _, _ in _GROUPS if call.given(flag)]
    if len(given) > 1:
        first, second = (flag.removesuffix("-groups") for flag in reversed(given[:2]))
        raise UsageError(f"setting both {first} and {second} groups are not supported")
    for flag, policy, _ in _GROUPS:
        if call.given(flag):
            config = replace(config, priority_policy=policy, priority_groups=_groups(call, flag))
    if call.given("pinned-ttl"):
        config = replace(config, priority_timeout=call.duration("pinned-ttl"))
    return config


def check_config(config: ConsumerConfig) -> None:
    """What no server accepts; raises UsageError."""
    if config.rate_limit_bps and not config.deliver_subject:
        raise UsageError("rate limits are only possible on Push consumers")
    if config.idle_heartbeat and not config.deliver_subject:
        raise UsageError("pull subscribers does not support idle heartbeats")


def _check_alone(config: ConsumerConfig) -> None:
    """What a server would say of numbers that none is to see; raises UsageError."""
    found = config.num_replicas
    wrong = f"/num_replicas: must be <= {REPLICAS_MAX} but found {found}"
    if found <= REPLICAS_MAX:
        found = config.max_waiting
        wrong = f"/max_waiting: must be >= 0 but found {found}" if found < 0 else ""
    if wrong:
        raise UsageError(f"Validation Failed: {wrong}")


async def edit(call: Call) -> int | None:
    """Change a consumer; with --dry-run 1 when something would change."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        old = found.config or ConsumerConfig()
        if not old.durable_name:
            raise UsageError("only durable consumers can be edited")
        old = replace(old, metadata=without_server_metadata(old.metadata))
        new = old
        if call.given("config"):  # of the one that was named, or picked from a list
            new = replace(_from_file(call), name=old.name, durable_name=old.durable_name)
        if call.flag("interactive"):
            what = f"could not create new configuration for Consumer {found.name}"
            new = edited(call, new, ConsumerConfig, what)
            if (new.name, new.durable_name) != (old.name, old.durable_name):
                raise UsageError(f"{what}: a consumer keeps its name")
        new = with_flags(call, new)
        if new.backoff and new.ack_wait != old.ack_wait:
            raise UsageError("consumers with backoff policies do not support editing Ack Wait")
        lines = differences(old, new)
        if not lines:
            call.output.say("No difference in configuration")
            return 0
        if not call.as_json:
            call.output.say("\n".join(["Differences (-old +new):", *lines]))
        if call.flag("dry-run"):
            return 1
        name = f"{found.stream_name} > {found.name}"
        if not call.confirm(f"Really edit Consumer {name}"):
            return 0
        info = await manager.create_consumer(
            found.stream_name, new, action="update", level=required_level(new)
        )
    show_consumer(call, info)
    return 0


async def copy(call: Call) -> None:
    """A new consumer with the configuration of another, changed by flags."""
    async with call.manager() as manager:
        stream = check_name(call.text("stream"), "stream")
        wanted = check_name(call.text("source"), "consumer")
        with told_as("could not load source Consumer"):
            source = await manager.consumer_info(stream, wanted)
        old = source.config or ConsumerConfig()
        name = check_name(call.text("destination"), "consumer", about=NOT_CREATED)
        config = replace(old, name=name, metadata=without_server_metadata(old.metadata))
        config = replace(config, durable_name="" if call.flag("ephemeral") else name)
        config = with_flags(call, config)
        if call.flag("pull"):
            config = replace(config, deliver_subject="", idle_heartbeat=0, flow_control=False)
        check_config(config)
        with told_as(NOT_CREATED):
            info = await manager.create_consumer(stream, config, level=required_level(config))
    show_consumer(call, info)
