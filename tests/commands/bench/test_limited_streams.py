"""Benchmarks that read streams with limits for their consumers."""

import pytest

from jsctl.cli import main
from jsctl.testing import Broker

LIMITS = ("--limit-consumer-inactive", "2s", "--limit-consumer-max-pending", "10")
COUNT = ("--stream", "S", "--msgs", "3", "--no-progress")


@pytest.mark.processes
def test_consumers_of_benchmarks_are_as_long_lived_as_their_stream_allows() -> None:
    with Broker(jetstream=True) as server:
        at = ("-s", server.url)
        assert main((*at, "stream", "add", "S", "--subjects", "s", "--defaults", *LIMITS)) == 0
        for words in (
            ("js", "ordered"),
            ("js", "consume", "--batch", "5"),
            ("js", "fetch", "--batch", "5"),
            ("oldjs", "ordered", "s"),
        ):
            assert main((*at, "pub", "-J", "-q", "s", "x", "--count", "3")) == 0
            assert main((*at, "bench", *words, *COUNT)) == 0, words
