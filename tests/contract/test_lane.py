"""Which loop of the lane runs, as operators see it."""

import json
import urllib.request
from collections.abc import Callable

import pytest

from jsctl.broker.accel.choice import chosen
from jsctl.testing import Broker
from tests.contract.conftest import PURE


@pytest.mark.parametrize("kind", ["jsctl", PURE])
def test_the_first_lines_and_varz_tell_it(kind: str, brokers: Callable[[str], Broker]) -> None:
    broker = brokers(kind)
    expected = "pure" if kind == PURE else chosen().name
    assert f"[INF]   Lane:     {expected}\n" in broker.logs
    with urllib.request.urlopen(f"{broker.monitor_url}/varz", timeout=30) as answer:
        assert json.load(answer)["jsctl_lane"] == expected
