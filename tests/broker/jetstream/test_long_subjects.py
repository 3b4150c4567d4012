"""Subjects of configurations that no line between servers has room for are refused."""

from dataclasses import replace

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.stream import Republish, StreamConfig, SubjectTransform
from jsctl.broker.jetstream.consumers import config as consumer_config
from jsctl.broker.jetstream.streams import config as stream_config
from jsctl.broker.subject.transforms import compile_transform
from jsctl.broker.subject.validity import SUBJECT_BYTES_MAX

LONG = "s." + "x" * SUBJECT_BYTES_MAX
FITS = "s." + "x" * (SUBJECT_BYTES_MAX - 2)
STREAM = StreamConfig(name="S", subjects=("s.>",))


@pytest.mark.parametrize(
    "config",
    [
        replace(STREAM, subjects=("a", LONG)),
        replace(STREAM, subjects=("s.é" * (SUBJECT_BYTES_MAX // 4 + 1),)),
        replace(STREAM, subject_transform=SubjectTransform(src="s.>", dest=LONG)),
        replace(STREAM, subject_transform=SubjectTransform(src=LONG, dest="a")),
        replace(STREAM, republish=Republish(src="s.>", dest="t." + LONG)),
        replace(STREAM, republish=Republish(src=LONG, dest="t")),
    ],
)
def test_streams(config: StreamConfig) -> None:
    with pytest.raises(ApiError) as refused:
        stream_config.checked(config)
    assert refused.value.err_code == 10052
    assert "too long" in str(refused.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"filter_subject": LONG},
        {"filter_subjects": ("s.a", LONG)},
        {"deliver_subject": LONG},
        {"deliver_subject": "d", "deliver_group": LONG},
    ],
)
def test_consumers(fields: dict[str, object]) -> None:
    config = ConsumerConfig(name="c", **fields)  # type: ignore[arg-type]
    with pytest.raises(ApiError) as refused:
        consumer_config.check(config, STREAM)
    assert refused.value.err_code == 10012
    assert "too long" in str(refused.value)


def test_the_longest() -> None:
    assert stream_config.checked(replace(STREAM, subjects=(FITS,))).subjects == (FITS,)


def test_a_transform_does_not_make_longer_ones() -> None:
    doubling = compile_transform(b"s.*", b"$1.$1.$1.$1.$1")
    assert doubling.apply(b"s.abc") == b"abc.abc.abc.abc.abc"
    assert doubling.apply(b"s." + b"x" * 4000) is None
