"""Refusals that only clusters know, and those of copies: by their codes."""

import json
from typing import Any

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError, ApiErrorBody
from jsctl.api.stream import StreamConfig, StreamSource
from jsctl.broker.jetstream.consumers.config import check
from jsctl.broker.jetstream.consumers.defaults import with_defaults
from jsctl.broker.jetstream.sourcing.asking import read_answer
from jsctl.broker.jetstream.sourcing.origin import UpstreamOrigin
from tests.support.jetstream_rig import Rig


def code(answer: Any) -> int:
    found: int = answer["error"]["err_code"]
    return found


def consumer(rig: Rig, replicas: int) -> int:
    config = {"durable_name": "c", "ack_policy": "explicit", "num_replicas": replicas}
    body = {"stream_name": "S", "config": config}
    return code(rig.ask("CONSUMER.DURABLE.CREATE.S.c", body))


def test_replicas_of_consumers() -> None:
    rig = Rig(3)
    rig.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"], "num_replicas": 1})
    assert consumer(rig, 3) == 10126
    rig = Rig(3)
    config = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, "retention": "interest"}
    rig.ask("STREAM.CREATE.S", config)
    assert consumer(rig, 1) == 10134


def test_a_move_waits_for_what_goes_on() -> None:
    rig = Rig(5)
    config = {"name": "S", "subjects": ["s.>"], "num_replicas": 1}
    rig.ask("STREAM.CREATE.S", config)
    rig.ask("STREAM.UPDATE.S", {**config, "num_replicas": 3})
    placed = {**config, "num_replicas": 3, "placement": {"cluster": "C1"}}
    assert code(rig.ask("STREAM.UPDATE.S", placed)) == 10226


@pytest.mark.parametrize(("is_mirror", "wanted"), [(True, 10029), (False, 10045)])
@pytest.mark.parametrize(
    ("headers", "payload"),
    [(b"NATS/1.0 503\r\n\r\n", b""), (b"", json.dumps({"name": "c"}).encode())],
)
def test_origins_that_do_not_answer(
    is_mirror: bool, wanted: int, headers: bytes, payload: bytes
) -> None:
    origin = UpstreamOrigin(StreamSource(name="O"), "" if is_mirror else "O", "c", ())
    found = read_answer(origin, headers, payload)
    assert isinstance(found, ApiErrorBody)
    assert found.err_code == wanted


def test_a_mirror_begins_in_one_way() -> None:
    mirror = {"name": "O", "opt_start_seq": 2, "opt_start_time": "2020-01-01T00:00:00Z"}
    assert code(Rig().ask("STREAM.CREATE.M", {"name": "M", "mirror": mirror})) == 10032


def test_a_durable_consumer_has_one_name() -> None:
    """Requests give it the name in their subject; archives may have two."""
    config = with_defaults(ConsumerConfig(name="a", durable_name="b"))
    with pytest.raises(ApiError) as refused:
        check(config, StreamConfig())
    assert refused.value.err_code == 10132


@pytest.mark.parametrize("digits", [20, 5_000])
def test_samples_are_numbers_that_can_be_read(digits: int) -> None:
    rig = Rig()
    rig.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
    for text in (digits * "9", digits * "9" + "%", "+" + digits * "9"):
        config = {"durable_name": "c", "ack_policy": "explicit", "sample_freq": text}
        body = {"stream_name": "S", "config": config}
        assert code(rig.ask("CONSUMER.DURABLE.CREATE.S.c", body)) == 10095


def test_what_tells_a_source_from_others_fits_into_its_messages() -> None:
    """A position of it is written down even where none of its messages came."""
    long = [{"src": f"o.{n}." + "a" * 16_000, "dest": f"s.{n}." + "b" * 16_000} for n in range(2)]
    source = {"name": "O", "subject_transforms": [{"src": "o.x", "dest": "s.x"}, *long]}
    rig = Rig()
    assert "error" not in rig.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
    wanted = {"name": "S", "subjects": ["s.>"], "sources": [source]}
    assert code(rig.ask("STREAM.UPDATE.S", wanted)) == 10052
    source["subject_transforms"] = long[:1]
    assert "error" not in rig.ask("STREAM.UPDATE.S", wanted)


def test_a_stream_has_sequences_left_where_it_begins() -> None:
    rig = Rig()
    body = {"name": "S", "subjects": ["s.>"], "first_seq": (1 << 64) - 1}
    assert code(rig.ask("STREAM.CREATE.S", body)) == 10052
    assert "error" not in rig.ask("STREAM.CREATE.S", {**body, "first_seq": 1 << 62})
