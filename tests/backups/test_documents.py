"""Documents of backups that no server can read are told."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from jsctl.backups.archive import ArchiveReader, begin_bytes, end_bytes
from jsctl.backups.directory import description_of
from jsctl.backups.entries import entry_bytes
from jsctl.backups.s2 import BrokenStream, plain_chunk
from jsctl.errors import JsctlError

PAIR = {"consumer_seq": 1, "stream_seq": 1}
STATES: list[dict[str, object]] = [
    {"first_seq": 10**350},
    {"last_seq": -1},
    {"messages": "x"},
    {"bytes": True},
    {"consumer_count": 1.0},
    {"first_ts": "yesterday"},
]
CONSUMERS: list[dict[str, Any]] = [
    {"config": {"max_deliver": "x"}},
    {"config": {"backoff": ["x"]}},
    {"state": {"delivered": 5}},
    {"state": {"ack_floor": {"stream_seq": -1}}},
    {"state": {"pending": {"a": {}}}},
    {"state": {"pending": {"2": 5}}},
    {"state": {"pending": {"2": {"Sequence": 2**64}}}},
    {"state": {"redelivered": {"1": "x"}}},
    {"state": {"redelivered": {str(2**64): 1}}},
]
DESCRIPTIONS: list[dict[str, Any]] = [
    *({"state": one} for one in STATES),
    {"state": []},
    {"edit": 5},
    {"source": "x"},
    {"config": {"name": "S", "max_msgs": "x"}},
    {"config": {"name": "S", "metadata": {"a": 1}}},
]


def read(state: dict[str, object], *consumers: dict[str, Any]) -> int:
    """How many entries there are."""
    told = {"consumer_count": len(consumers), **state}
    bodies = [json.dumps({"config": {}, "state": {}, **one}).encode() for one in consumers]
    entries = [entry_bytes(f"consumers/C{at}", 1, 0, b"", one) for at, one in enumerate(bodies)]
    parts = (begin_bytes(1, told), *entries, end_bytes())
    return len(list(ArchiveReader(io.BytesIO(plain_chunk(b"".join(parts))))))


@pytest.mark.parametrize("state", STATES)
def test_a_state(state: dict[str, object]) -> None:
    with pytest.raises(BrokenStream, match=r"error in state\.json"):
        read(state)


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer(consumer: dict[str, Any]) -> None:
    with pytest.raises(BrokenStream, match='failed to decode consumer "C0" state'):
        read({}, consumer)


@pytest.mark.parametrize("document", DESCRIPTIONS)
def test_a_description(document: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "backup.json").write_text(json.dumps({"config": {"name": "S"}, **document}))
    with pytest.raises(JsctlError, match=r"backup\.json: "):
        description_of(tmp_path)


def test_what_a_later_server_says_is_passed_over(tmp_path: Path) -> None:
    config = {"name": "S", "retention": "new", "sources": [{"name": "A", "new": {}}], "new": 1}
    document = {"config": config, "state": {"new": {}, "last_seq": None}, "new": 5}
    (tmp_path / "backup.json").write_text(json.dumps(document))
    assert description_of(tmp_path).config == config
    pending = {"2": {"Sequence": 2, "Timestamp": -5, "New": 1}}
    state = {"delivered": PAIR, "ack_floor": PAIR, "pending": pending, "redelivered": {"2": 3}}
    consumer = {"config": {"ack_policy": "new", "new": {}}, "state": {**state, "new": []}}
    assert read({"new": {}, "first_seq": 2**64 - 1}, consumer, {}) == 3
