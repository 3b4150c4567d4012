"""The content of replicas as a table: a data source with one partition a replica."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from jsctl.spark.failures import reported, reporting
from jsctl.spark.options import connection_options, source_options
from jsctl.spark.pipeline.replicas.reader import Pinned, read_replica

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME = "jetstream_replicas"
DDL = "peer STRING, seq BIGINT, hash BIGINT"


class ReplicaSource(DataSource):
    """Messages by replica, as (peer, seq, hash)."""

    @classmethod
    def name(cls) -> str:
        """What stands behind `.format(...)`."""
        return NAME

    def schema(self) -> str:
        """Three columns."""
        return DDL

    @reported
    def reader(self, schema: "StructType") -> "ReplicaReader":
        """Reads all replicas that the options name."""
        given = dict(self.options)
        consumers = json.loads(given.pop("consumers"))
        first, last = int(given.pop("first")), int(given.pop("last"))
        settings = source_options(given).connection.settings
        stream = given["stream"]
        return ReplicaReader(
            [
                Pinned(settings, stream, peer, consumer, first, last)
                for peer, consumer in consumers.items()
            ]
        )


class ReplicaPart(InputPartition):
    """One replica."""


class ReplicaReader(DataSourceReader):
    """Each task reads one replica."""

    def __init__(self, pinned: Sequence[Pinned]) -> None:
        self.pinned = pinned

    def partitions(self) -> Sequence[InputPartition]:
        """One a replica."""
        return [ReplicaPart(at) for at in range(len(self.pinned))]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """What the replica holds."""
        with reporting():
            yield from read_replica(self.pinned[partition.value])


def replica_options(pinned: Sequence[Pinned]) -> Mapping[str, str]:
    """The options that read consumers which were pinned before."""
    one = pinned[0]
    return {
        **connection_options(one.settings),
        "stream": one.stream,
        "first": str(one.first),
        "last": str(one.last),
        "consumers": json.dumps({each.peer: each.consumer for each in pinned}),
    }
