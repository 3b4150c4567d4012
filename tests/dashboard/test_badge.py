"""How soon the badge tells that a server is gone."""

import time

import pytest

from jsctl.dashboard.model.snapshot import Badge
from jsctl.testing import ClusterFactory
from tests.dashboard.conftest import Drive
from tests.dashboard.test_live import KINDS

pytestmark = pytest.mark.alone

BADGE_S = 3.0


@pytest.mark.parametrize("kind", list(KINDS))
async def test_a_killed_server_is_seen_soon(
    kind: str, jsctl_cluster: ClusterFactory, drive: Drive
) -> None:
    cluster = jsctl_cluster(3, server=KINDS[kind])
    victim = next(name for name in cluster.names if name != cluster.meta_leader())
    async with drive([broker.url for broker in cluster if broker.name != victim]) as driven:
        await driven.until(lambda now: now.badge is Badge.HEALTHY, "it is healthy")
        cluster.kill(victim)
        killed_s = time.monotonic()
        await driven.until(lambda now: now.badge is not Badge.HEALTHY, "the badge changed")
        assert time.monotonic() - killed_s < BADGE_S
