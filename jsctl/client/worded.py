"""Errors in the words of the NATS client libraries, which `nats` shows for buckets and services."""

from collections.abc import Iterator
from contextlib import contextmanager

from jsctl.api.errors import ApiError
from jsctl.dataclass import dataclass
from jsctl.errors import Conflict, JsctlError, NotFound, RequestFailed


@dataclass(slots=True)
class _Worded:
    """A refusal of the API, told as the libraries do."""

    code: int
    err_code: int
    description: str

    def __str__(self) -> str:
        return (
            f"nats: API error: code={self.code} err_code={self.err_code} "
            f"description={self.description}"
        )


def worded(error: ApiError, prefix: str = "") -> RequestFailed:
    """The failure of a request, as a library says it."""
    return RequestFailed(_Worded(error.code, error.err_code, error.description), prefix=prefix)


@contextmanager
def library_words() -> Iterator[None]:
    """Refusals of the API leave the body as `worded` ones."""
    try:
        yield
    except ApiError as error:
        raise worded(error) from None


def not_found(what: str) -> NotFound:
    """`nats: <what>`: something named is not there."""
    return NotFound(f"nats: {what}")


def in_use(bucket: str) -> JsctlError:
    """There is another bucket of that name."""
    words = worded(ApiError(400, 10058, "stream name already in use"))
    return Conflict(f"nats: bucket name already in use: {bucket}\n{words}")


def refused(what: str) -> JsctlError:
    """`nats: <what>`."""
    return JsctlError(f"nats: {what}")
