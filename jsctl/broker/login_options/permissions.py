"""What a user, or a route, may publish and subscribe, as it was configured."""

from jsctl.dataclass import dataclass

MINUTE_NS = 60 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class SubjectPermission:
    """Allowed and denied subjects, each perhaps followed by a space and a queue name.

    `allow` None means that everything not denied is allowed; an empty tuple allows nothing.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResponsePermission:
    """Leave to publish to reply subjects of messages that were delivered."""

    messages_max: int = 1
    expires_ns: int = 2 * MINUTE_NS


@dataclass(frozen=True, slots=True)
class PermissionRules:
    """What a user, or a route, may publish and subscribe; None means everything."""

    publish: SubjectPermission | None = None
    subscribe: SubjectPermission | None = None
    responses: ResponsePermission | None = None
