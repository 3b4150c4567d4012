"""What infos of both kinds are put together from."""

from functools import lru_cache

from jsctl.api.cluster import ClusterInfo
from jsctl.api.codec import dumps
from jsctl.api.times import format_time

CLUSTERS_KEPT = 64
"""Leaders of groups with one replica, of which there are as many as servers."""

moment = lru_cache(2)(format_time)
"""The time of a turn, which every info in it tells."""


def text_of(value: object) -> str:
    """JSON as the codec writes it."""
    return dumps(value).decode()


@lru_cache(CLUSTERS_KEPT)
def _alone(name: str, leader: str) -> str:
    return text_of(ClusterInfo(name=name, leader=leader))


def cluster_text(cluster: ClusterInfo | None) -> str:
    """The member of an info that tells of its group; empty for none."""
    return "" if cluster is None else f',"cluster":{text_of(cluster)}'


def leader_text(name: str, leader: str) -> str:
    """The same for a group of which no more is told than who leads it."""
    return f',"cluster":{_alone(name, leader)}'
