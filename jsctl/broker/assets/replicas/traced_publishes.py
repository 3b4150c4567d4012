"""Publishes that are traced, at the leader of the stream that captured them.

What the stream makes of such a message is judged just before it is admitted, by the same checks on
the same state. One that is only traced is not admitted, unless it is refused: then its publisher
gets the refusal.
"""

from collections.abc import Callable, Sequence

from jsctl.api.errors import ApiError
from jsctl.broker.interest.targets import Captured
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.publish_headers import (
    EXPECTED_LAST_MSG_ID,
    EXPECTED_LAST_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ,
    nats_fields,
)
from jsctl.broker.jetstream.streams.sequencer import Admitted
from jsctl.broker.routing.trace import Trace

DUPLICATE = "msgid is duplicate"
TEXTS = {
    10060: "expected stream does not match",
    10054: "maximum payload exceeded",
    10166: "message TTL disabled",
}
"""Where the words of a trace are not those of the answer."""
ROLLUP_FAILED = 10111
STORE_FAILED = 10077
"""The store refuses: all else was found in order, which a trace tells by the subject."""
WITHOUT_CODE = (ROLLUP_FAILED, STORE_FAILED)
WRONG_LAST_SEQ = 10071
WRONG_LAST_ID = 10070


def admit(
    leader: StreamLeader,
    batch: Sequence[Captured],
    now_ns: int,
    propose: Callable[[Admitted], object],
) -> None:
    """Admit a turn's publishes, in order, some of which are traced."""
    waiting: list[Captured] = []
    for item in batch:
        trace = item[4]
        if isinstance(trace, Trace):
            if waiting:
                propose(leader.admit(waiting, now_ns))
                waiting = []
            if _judge(leader, item, trace, now_ns) and trace.only:
                continue
        waiting.append(item)
    if waiting:
        propose(leader.admit(waiting, now_ns))


def _judge(leader: StreamLeader, item: Captured, trace: Trace, now_ns: int) -> bool:
    """Note what the stream makes of it; whether it takes it."""
    outcome = leader.judge(item, now_ns)
    subject = item[0].decode(errors="replace")
    if isinstance(outcome, ApiError):
        stored = outcome.err_code == STORE_FAILED
        trace.judged(now_ns, subject if stored else "", _text(outcome, item[2]))
        return False
    if isinstance(outcome, int):
        trace.judged(now_ns, "", DUPLICATE)
        return False
    trace.judged(
        now_ns, outcome.subject.decode(errors="replace") or subject, unwanted=outcome.skipped
    )
    return True


def _text(error: ApiError, headers: bytes) -> str:
    """The words of a trace: those of the answer with its code, or what was expected as well."""
    if error.err_code in WITHOUT_CODE:
        return error.description
    if error.err_code not in (WRONG_LAST_SEQ, WRONG_LAST_ID):
        return TEXTS.get(error.err_code, str(error))
    fields = nats_fields(headers)
    found = error.description.rpartition(": ")[2]
    if error.err_code == WRONG_LAST_ID:
        wanted = _shown(fields.get(EXPECTED_LAST_MSG_ID, b""))
        return f'last msgid mismatch: "{wanted}" vs "{found}"'
    wanted = _shown(fields.get(EXPECTED_LAST_SEQ, b""))
    if wanted not in ("", found):
        return f"last sequence mismatch: {wanted} vs {found}"
    wanted = _shown(fields.get(EXPECTED_LAST_SUBJECT_SEQ, b""))
    return f"last sequence by subject mismatch: {wanted} vs {found}"


def _shown(value: bytes) -> str:
    return value.decode(errors="replace")
