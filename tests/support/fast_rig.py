"""Fast batches at a leader: messages in, and what publishers are told in short."""

from typing import Any

from jsctl.broker.jetstream.batches.fast_replies import FastOperation
from tests.support.admission_rig import AdmissionRig

START, APPEND, COMMIT, END, PING = FastOperation
OPERATIONS = {"start": START, "append": APPEND, "commit": COMMIT, "end": END, "ping": PING}
Said = list[tuple[Any, ...]]


def reply_of(
    seq: int, operation: FastOperation, name: str = "b", flow: int = 10, gaps: str = "fail"
) -> str:
    return f"_INBOX.x.{name}.{flow}.{gaps}.{seq}.{operation}.$FI"


def send(rig: AdmissionRig, *messages: tuple[int, FastOperation], **more: Any) -> None:
    """Messages of one batch in a turn; its headers are those of all."""
    fields = more.pop("fields", {})
    rig.publish(*[(b"s.a", reply_of(*one, **more), fields) for one in messages])


def heard(rig: AdmissionRig) -> Said:
    """What publishers were told since the last call, in short."""
    said, rig.said = rig.said, []
    return [brief(document) for _, document in said]


def brief(document: dict[str, Any]) -> tuple[Any, ...]:
    if "error" in document:
        code = document["error"]["err_code"]
        return ("err", document["seq"], code) if "type" in document else ("refused", code)
    match document.get("type"):
        case "ack":
            return "flow", document["seq"], document["msgs"]
        case "gap":
            return "gap", document["last_seq"], document["seq"]
    return "done", document["seq"], document["count"]
