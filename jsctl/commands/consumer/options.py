"""The flags of consumer configurations; completion loads nothing else of these commands."""

from jsctl.api.consumer import ConsumerConfig
from jsctl.commands.toolkit.assets.config_flags import options_for
from jsctl.commands.toolkit.grammar.spec import Kind, Option

_BACKOFF = (
    Option(
        "backoff", "Creates a consumer backoff policy", choices=("linear", "none"), metavar="MODE"
    ),
    Option(
        "backoff-steps",
        "Number of steps to use when creating the backoff policy",
        Kind.UNSIGNED,
        default="10",
    ),
    Option(
        "backoff-min",
        "The shortest backoff period that will be generated",
        Kind.DURATION,
        default="1m",
    ),
    Option(
        "backoff-max",
        "The longest backoff period that will be generated",
        Kind.DURATION,
        default="20m",
    ),
)
_CREATE = (
    Option("deliver", "Start policy (all, new, last, subject, 1h, msg sequence)", metavar="POLICY"),
    Option("ephemeral", "Create an ephemeral consumer", Kind.FLAG),
    Option("pull", "Deliver messages in 'pull' mode", Kind.FLAG),
    Option(
        "pause",
        "Pause the consumer for a duration after its start or until a time (2026-01-02 15:04:05)",
    ),
    Option(
        "pinned-groups",
        "Create a Pinned Client consumer based on these groups",
        Kind.LIST,
        metavar="GROUPS",
    ),
    Option(
        "pinned-ttl",
        ("The time to allow for a client to pull before losing the pinned status"),
        Kind.DURATION,
        metavar="TTL",
    ),
    Option(
        "overflow-groups",
        "Create a Overflow consumer based on these groups",
        Kind.LIST,
        metavar="GROUPS",
    ),
    Option(
        "prioritized-groups",
        "Create a Prioritized consumer based on these groups",
        Kind.LIST,
        metavar="GROUPS",
    ),
)


def create_options() -> tuple[Option, ...]:
    """Flags of add and copy."""
    return (*options_for(ConsumerConfig), *_BACKOFF, *_CREATE)


def edit_options() -> tuple[Option, ...]:
    """Flags of edit."""
    return (*options_for(ConsumerConfig, editing=True), *_BACKOFF)
