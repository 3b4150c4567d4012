"""A consumer in an archive: configuration and state as one JSON document, both ways.

The names are nats-server's, with one field of our own that others ignore: what a consumer that
begins with the last message of each subject still has to deliver.
"""

from collections.abc import Collection, Mapping

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode, dumps, encode
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.backups.s2 import BrokenStream
from jsctl.broker.jetstream.consumers.chosen import Chosen
from jsctl.broker.jetstream.consumers.dead_letters import DEAD_MAX
from jsctl.broker.jetstream.consumers.state import ConsumerState, Death

SEQUENCE_MAX = 1 << 62
DELIVERIES_MAX = (1 << 32) - 1
_SELECTED = "jsctl_selected"
_DEAD = "jsctl_dead"
"""What was given up, and is not stored as dead letters: sequence, time in ns, deliveries, whether a
client terminated it, and what that said."""
_DELAYED = "jsctl_delayed"
"""What waits for a delay that a client asked for."""
Document = dict[str, object]


def document_of(config: ConsumerConfig, state: ConsumerState, last_seq: int) -> bytes:
    """A consumer as it stands, bounded to a stream that ends with `last_seq`."""
    pending = {
        str(seq): {"Sequence": number, "Timestamp": time_ns}
        for seq, (number, time_ns) in state.pending.items()
        if seq <= last_seq
    }
    again = {str(seq): count for seq, count in state.redelivered.items() if seq <= last_seq}
    told: Document = {
        "delivered": _pair(state.delivered_seq, min(state.delivered_stream, last_seq)),
        "ack_floor": _pair(state.floor_seq, min(state.floor_stream, last_seq)),
    }
    told |= {"pending": pending} if pending else {}
    told |= {"redelivered": again} if again else {}
    if state.last_seqs:
        told[_SELECTED] = {"last_seqs": list(state.last_seqs), "resume": state.resume}
    dead = [[seq, *death] for seq, death in state.dead.items() if seq <= last_seq]
    delayed = [seq for seq in state.delayed if seq <= last_seq]
    told |= ({_DEAD: dead} if dead else {}) | ({_DELAYED: delayed} if delayed else {})
    return dumps({"config": encode(config), "state": told})


def document_of_info(config: ConsumerConfig, info: ConsumerInfo, last_seq: int) -> bytes:
    """A consumer of which only its info is known: what waits for an ack is delivered again."""
    delivered, floor = info.delivered, info.ack_floor
    if info.num_ack_pending:
        delivered = floor
    told = {
        "delivered": _pair(delivered.consumer_seq, min(delivered.stream_seq, last_seq)),
        "ack_floor": _pair(floor.consumer_seq, min(floor.stream_seq, last_seq)),
    }
    return dumps({"config": encode(config), "state": told})


def _pair(consumer: int, stream: int) -> Document:
    return {"consumer_seq": consumer, "stream_seq": stream}


def parsed(name: str, data: bytes) -> tuple[ConsumerConfig, ConsumerState]:
    """The consumer of an archive's entry. Raises BrokenStream for what cannot be."""
    try:
        document = jsontext.parse_object(data)
        config = decode(ConsumerConfig, document.get("config"), strict=True)
        state = _state(_mapping(document, "state"))
    except (DecodeError, TypeError, ValueError) as error:
        raise BrokenStream(f'failed to decode consumer "{name}" state: {error}') from None
    except _Unfit as error:
        raise BrokenStream(f'failed to set consumer "{name}" state: {error}') from None
    return config, state


class _Unfit(Exception):
    """Numbers that do not go together."""


def _state(told: Mapping[str, object]) -> ConsumerState:
    delivered, floor = _mapping(told, "delivered"), _mapping(told, "ack_floor")
    delivered_seq, delivered_stream = _positions(delivered)
    floor_seq, floor_stream = _positions(floor)
    if floor_seq > delivered_seq or floor_stream > delivered_stream:
        raise _Unfit("bad ack floor")
    pending = _pending(_mapping(told, "pending"), floor_seq, floor_stream, delivered_stream)
    redelivered = {
        _sequence(seq): _checked(count) for seq, count in _mapping(told, "redelivered").items()
    }
    dead = _dead(told.get(_DEAD), delivered_stream, pending)
    delayed, selected = told.get(_DELAYED), _mapping(told, _SELECTED)
    some = selected.get("last_seqs")
    seqs = [_checked(seq) for seq in some] if isinstance(some, list) else []
    if seqs != sorted(set(seqs)):
        raise _Unfit("selected sequences are not ascending")
    waits = map(_checked, delayed) if isinstance(delayed, list) else ()
    highest = max((number for number, _ in pending.values()), default=0)
    return ConsumerState.begun(
        (max(delivered_seq, highest), delivered_stream),
        (floor_seq, floor_stream),
        pending=pending,
        redelivered=redelivered,
        dead=dead,
        delayed={seq: None for seq in waits if seq in pending},
        last_seqs=Chosen(seqs),
        resume=_number(selected, "resume") if selected else 0,
    )


def _positions(told: Mapping[str, object]) -> tuple[int, int]:
    """Sequences of a consumer and of its stream."""
    return _number(told, "consumer_seq"), _number(told, "stream_seq")


def _pending(
    told: Mapping[str, object], floor_seq: int, floor_stream: int, delivered_stream: int
) -> dict[int, tuple[int, int]]:
    """In the order of the stream. Consumer sequences ascend with it here, whoever wrote them."""
    made: dict[int, tuple[int, int]] = {}
    before = floor_seq
    for seq, one in sorted((_sequence(seq), one) for seq, one in told.items()):
        if not isinstance(one, dict):
            raise _Unfit("bad pending entry")
        number, time_ns = _number(one, "Sequence"), _number(one, "Timestamp")
        if not floor_stream < seq <= delivered_stream:
            raise _Unfit("bad pending entry")
        before = max(number, before + 1)
        made[seq] = before, time_ns
    return made


def _dead(told: object, delivered_stream: int, pending: Collection[int]) -> dict[int, Death]:
    if told is None:
        return {}
    made: dict[int, Death] = {}
    if not isinstance(told, list) or not all(isinstance(one, list) for one in told):
        raise _Unfit("bad dead letters")
    for row in told:
        if len(row) != 5 or not isinstance(row[3], bool) or not isinstance(row[4], str):
            raise _Unfit("bad dead letters")
        seq, time_ns, deliveries = map(_checked, row[:3])
        if seq > delivered_stream or seq in pending or len(made) >= DEAD_MAX:
            raise _Unfit("bad dead letters")
        made[seq] = Death(time_ns, min(deliveries, DELIVERIES_MAX), row[3], row[4])
    return made


def _mapping(document: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = document.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise TypeError(f"{key} is no object")
    return found


def _number(document: Mapping[str, object], key: str) -> int:
    return _checked(document.get(key, 0))


def _sequence(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise _Unfit(f"bad sequence {text[:30]!r}")
    return _checked(int(text))


def _checked(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= SEQUENCE_MAX:
        raise _Unfit("a number is out of range")
    return value
