"""Errors of requests, told as those of what was tried."""

from collections.abc import Iterator
from contextlib import contextmanager

from jsctl.api.errors import ApiError
from jsctl.errors import JsctlError, NotAllowed, RequestFailed, prefixed


@contextmanager
def told_as(about: str) -> Iterator[None]:
    """Within it `about` is in front of what a server refuses, and of why it was not asked.

    Raises RequestFailed, and other errors as they are.
    """
    try:
        yield
    except ApiError as error:
        raise RequestFailed(error, prefix=about) from None
    except NotAllowed:  # names the subject that was asked
        raise
    except JsctlError as error:
        raise prefixed(error, about) from None
