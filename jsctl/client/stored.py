"""Answers that are not documents of the API: stored publishes, and messages got directly."""

from typing import TYPE_CHECKING

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode
from jsctl.api.errors import ApiError, ApiErrorBody
from jsctl.api.stream import RawStreamMsg
from jsctl.api.times import parse_time
from jsctl.client.headers import Headers, block_of, pairs_of, status_of
from jsctl.errors import JsctlError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

NO_MESSAGE = ApiError(404, 10037, "no message found")
_OWN = (
    *("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp"),
    *("Nats-Num-Pending", "Nats-Last-Sequence"),
)
_DIGITS_MAX = len(str(2**64 - 1))


def stored_answer(answer: bytes) -> dict[str, object]:
    """JetStream's answer to a publish. Raises ApiError, and JsctlError for what is none."""
    try:
        document = jsontext.parse_object(answer)
        problem = document.get("error")
        refusal = decode(ApiErrorBody, problem) if isinstance(problem, dict) else None
    except DecodeError:
        raise JsctlError("the answer is not one of JetStream") from None
    if refusal is not None:
        raise ApiError.of(refusal)
    return document


def direct_answer(message: "Msg") -> RawStreamMsg:
    """A message that a direct get brought. Raises ApiError when there was none, JsctlError where
    the message's own headers are broken: the server puts its own behind them as they are."""
    headers = dict(message.headers or {})
    seq, stored = headers.get("Nats-Sequence", ""), headers.get("Nats-Time-Stamp", "")
    if not seq.isdecimal() or not seq.isascii():
        raise _no_message(message)
    if len(seq) > _DIGITS_MAX or not _is_time(stored):
        raise _unreadable()
    kept = Headers.of(_without_envelope(list(pairs_of(block_of(message.headers)))))
    return RawStreamMsg(
        subject=headers.get("Nats-Subject", ""),
        seq=int(seq),
        hdrs=kept.block if kept is not None else b"",
        data=bytes(message.data),
        time=stored,
    )


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


def _no_message(message: "Msg") -> ApiError | JsctlError:
    """Why an answer brought none. One that did may begin with a status, whoever published it."""
    status = status_of(message.headers)
    if status == "404":
        return NO_MESSAGE
    if status:
        return ApiError(int(status), 0, (message.headers or {}).get("Description", ""))
    return _unreadable()


def _unreadable() -> JsctlError:
    return JsctlError("the message has headers that cannot be read: it cannot be got directly")


def _without_envelope(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The server's headers stand behind those of the message, which may have the same names."""
    for name in _OWN:
        at = max((at for at, (key, _) in enumerate(pairs) if key == name), default=-1)
        if at >= 0:
            del pairs[at]
    return pairs


def header_of(message: RawStreamMsg, key: str) -> str:
    """The first header of that name, empty when there is none."""
    for line in message.hdrs.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon and name == key:
            return value.strip()
    return ""
