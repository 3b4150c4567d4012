"""A cluster of which all parts work and know each other."""

from typing import Any

from jsctl.testing import Cluster
from tests.support.waiting import wait_for


def wait_whole(cluster: Cluster) -> None:
    """A fresh cluster loses or refuses requests until this is so."""
    wait_for(lambda: _is_whole(cluster), "every server is healthy, and the leader sees all others")


def _is_whole(cluster: Cluster) -> bool:
    try:
        pages: list[Any] = [broker.monitor("/healthz") for broker in cluster]
        leader = cluster.meta_leader()
        meta: Any = cluster[leader].monitor("/jsz") if leader else {}
    except OSError:
        return False
    seen = meta.get("meta_cluster", {}).get("replicas") or []
    return (
        all(page.get("status") == "ok" for page in pages)
        and {one["name"] for one in seen} == {*cluster.names} - {leader}
        and all(one["current"] and not one.get("offline") for one in seen)
    )
