"""`rtt` and `latency`: how far servers are."""

import re

from jsctl.testing import Broker
from tests.commands.parity.conftest import Same

NUMBER = re.compile(r"\b\d+(\.\d+)?[KM]?\b")
RTT = """
rtt
rtt 2
rtt x
rtt -s 127.0.0.1:1
rtt 1 2
"""
LATENCY = """
latency
lat --server-b {url} --duration 1s --rate 100
latency --server-b '' --duration 2s
latency --server-b {url} --size 2
latency --server-b 127.0.0.1:1 --duration 1s
"""


def tidy(text: str) -> str:
    """Without figures."""
    return NUMBER.sub("N", text)


def test_round_trips(same: Same, one_server: Broker) -> None:
    same(RTT)
    same("rtt -j", tidy=tidy)
    same(f"rtt -s localhost:{one_server.port},{one_server.url}")


def test_latency(same: Same, one_server: Broker) -> None:
    same(LATENCY.format(url=one_server.url), tidy=tidy)
