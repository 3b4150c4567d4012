"""The format "jetstream": what Spark asks of a data source, answered by readers and writers.

`spark.read.format("jetstream")` finds it through `pyspark_jetstream`. Objects of these classes
travel between processes as pickles, so nothing here holds a connection.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from jsctl.spark.failures import reported
from jsctl.spark.options import sink_options, source_options
from jsctl.spark.reading.batch import COLUMN_TYPES, JetStreamReader, checked_schema

if TYPE_CHECKING:
    from jsctl.spark.reading.streaming import JetStreamStreamReader
    from jsctl.spark.writing.sink import JetStreamStreamWriter, JetStreamWriter

NAME = "jetstream"


class JetStreamDataSource(DataSource):
    """Streams of a JetStream server as tables, and tables as messages."""

    @classmethod
    def name(cls) -> str:
        """What stands behind `.format(...)`."""
        return NAME

    @reported
    def schema(self) -> str:
        """All columns; `headers` only if the options say so."""
        options = source_options(self.options)
        names = [n for n in COLUMN_TYPES if n != "headers" or options.include_headers]
        return ", ".join(f"{name} {COLUMN_TYPES[name]}" for name in names)

    @reported
    def reader(self, schema: StructType) -> "JetStreamReader":
        """A batch read of the columns of a schema."""
        return JetStreamReader(source_options(self.options), checked_schema(schema))

    @reported
    def streamReader(self, schema: StructType) -> "JetStreamStreamReader":
        """A streaming read of the columns of a schema."""
        from jsctl.spark.reading.streaming import JetStreamStreamReader

        return JetStreamStreamReader(source_options(self.options), checked_schema(schema))

    @reported
    def writer(self, schema: StructType, overwrite: bool) -> "JetStreamWriter":
        """A batch write."""
        from jsctl.spark.writing.sink import JetStreamWriter

        return JetStreamWriter(sink_options(self.options), schema, overwrite=overwrite)

    @reported
    def streamWriter(self, schema: StructType, overwrite: bool) -> "JetStreamStreamWriter":
        """The sink of a streaming query; complete output is appended batch by batch."""
        from jsctl.spark.writing.sink import JetStreamStreamWriter

        return JetStreamStreamWriter(sink_options(self.options), schema)
