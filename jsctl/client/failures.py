"""What the client library raises, as errors of ours: the only place that knows both.

The library is imported when something has failed, not before: see `connection`.
"""

from jsctl.client.refusals import is_login, sentence_of
from jsctl.errors import JsctlError, NotAllowed, Unreachable, UsageError

NO_SERVERS = "nats: no servers available for connection"


def translate(error: Exception, what: str = "") -> JsctlError:
    """One of `foreign_errors` as one of ours."""
    import nats.errors as theirs

    prefix = f"{what}: " if what else ""
    if isinstance(error, JsctlError):
        return error
    if isinstance(error.__cause__, JsctlError):
        return error.__cause__
    if isinstance(error, theirs.NoRespondersError):
        return Unreachable(f"{prefix}nats: no responders available for request")
    if isinstance(error, theirs.TimeoutError | TimeoutError):
        return Unreachable(f"{prefix}nats: timeout")
    if isinstance(error, theirs.NoServersError):
        return Unreachable(prefix + NO_SERVERS)
    if isinstance(error, theirs.MaxPayloadError | theirs.BadSubjectError | theirs.BadHeaderError):
        return UsageError(f"{prefix}{error}")
    text = sentence_of(str(error)) if str(error) else type(error).__name__
    if isinstance(error, theirs.AuthorizationError) or is_login(text):
        return NotAllowed(f"{prefix}{text}", hints=("the server does not know these credentials",))
    if "permissions violation" in text.lower():
        return NotAllowed(f"{prefix}{text}")
    return Unreachable(f"{prefix}{text}")


def nobody_there(error: Exception) -> bool:
    """Whether a request failed because nobody listens to its subject."""
    from nats.errors import NoRespondersError

    return isinstance(error, NoRespondersError)


def foreign_errors() -> tuple[type[Exception], ...]:
    """What the library raises and `translate` understands."""
    from nats.errors import Error

    return (Error, OSError, TimeoutError, ValueError)
