"""Configurations of streams."""

from jsctl.api.stream import StreamConfig
from jsctl.commands.stream.config import required_level


def test_newer_features_name_the_level_they_need() -> None:
    assert required_level(StreamConfig()) == 0
    assert required_level(StreamConfig(allow_msg_ttl=True)) == 1
    assert required_level(StreamConfig(allow_atomic=True)) == 2
    assert required_level(StreamConfig(allow_batched=True)) == 4
