"""Configs and their JSON, known by each other for a while."""

import pytest

from jsctl.api.codec import DecodeError, dumps, loads
from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.config_texts import KEPT_MAX, TEXT_BYTES_MAX, ConfigTexts


def test_a_text_that_was_made_here_is_not_read() -> None:
    texts = ConfigTexts(StreamConfig)
    config = StreamConfig(name="S", subjects=("s.>",))
    text = texts.text(config)
    assert text == dumps(config) and texts.text(config) is text
    assert texts.config(bytes(bytearray(text))) is config


def test_others_are_read_and_written_each_time() -> None:
    texts = ConfigTexts(StreamConfig)
    config = StreamConfig(name="S")
    assert texts.config(dumps(config)) == config
    large = StreamConfig(name="L", description="x" * TEXT_BYTES_MAX)
    assert loads(StreamConfig, texts.text(large)) == large
    assert texts.config(texts.text(large)) is not large
    with pytest.raises(DecodeError):
        texts.config(b"{")


def test_only_the_last_ones_are_held() -> None:
    texts = ConfigTexts(StreamConfig)
    made = [StreamConfig(name=f"S{number}") for number in range(KEPT_MAX + 1)]
    kept = [texts.text(one) for one in made]
    assert texts.config(kept[0]) is not made[0] and texts.config(kept[1]) is made[1]
    # An object in the place of one that was forgotten is not taken for it.
    for number in range(3 * KEPT_MAX):
        one = StreamConfig(name=f"T{number}")
        assert texts.text(one) == dumps(one)
        del one
