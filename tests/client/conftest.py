"""A real cluster with a system account for the whole session."""

from collections.abc import Iterator

import pytest

from jsctl.api.times import SECOND_NS
from jsctl.settings import Context, Settings
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, Cluster, RealServer


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, server=RealServer) as cluster:
        yield cluster


@pytest.fixture
def settings(cluster: Cluster) -> Settings:
    return Settings(connection=Context(url=",".join(cluster.urls)), timeout_ns=20 * SECOND_NS)


@pytest.fixture
def system_settings(cluster: Cluster) -> Settings:
    context = Context(url=cluster.urls[0], user=SYSTEM_USER, password=SYSTEM_PASSWORD)
    return Settings(connection=context, timeout_ns=20 * SECOND_NS)
