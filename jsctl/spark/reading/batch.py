"""A batch read: the columns there are, ranges planned on the driver, each read in a task."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from jsctl.errors import UsageError
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.failures import reported, reporting
from jsctl.spark.options import SourceOptions
from jsctl.spark.reading.arrow import arrow_schema, record_batch
from jsctl.spark.reading.plan import Bounds, batch_ranges
from jsctl.spark.reading.pushdown import bounds_of
from jsctl.spark.reading.telling import Teller
from jsctl.spark.scan.range import Range
from jsctl.spark.scan.read import read

COLUMN_TYPES = {
    "subject": "string",
    "data": "binary",
    "headers": "map<string,array<string>>",
    "stream": "string",
    "seq": "bigint",
    "timestamp": "timestamp",
    "ts_ns": "bigint",
}
"""Every column and its type, in order. `headers` is there on demand."""


def checked_schema(schema: StructType) -> StructType:
    """A schema whose columns are known and have their types; raises UsageError."""
    for column in schema.fields:
        wanted = COLUMN_TYPES.get(column.name)
        if wanted is None:
            raise UsageError(
                f"the schema has an unknown column {column.name}",
                hints=(f"there are {', '.join(COLUMN_TYPES)}",),
            )
        if column.dataType.simpleString() != wanted:
            raise UsageError(
                f"column {column.name} is {wanted}, not {column.dataType.simpleString()}"
            )
    return schema


class Part(InputPartition):
    """One task's range."""

    def __init__(self, wanted: Range) -> None:
        super().__init__(wanted)
        self.range = wanted


class _Push:
    """`pushFilters` that also works where pushdown is off.

    Spark refuses a reader that has its own method while its setting is off, as it is by default.
    It recognizes the inherited one by `__func__`.
    """

    def __init__(self, reader: "JetStreamReader") -> None:
        self._reader = reader
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        bounds, left = bounds_of(filters, self._reader.options.filter_subjects)
        self._reader.bounds = bounds
        return left


class JetStreamReader(DataSourceReader):
    """A batch read: planned on the driver, each range read in a task."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.columns = schema
        self.bounds = Bounds()

    @property
    def pushFilters(self) -> _Push:
        """Takes over filters of the query."""
        return _Push(self)

    @reported
    def partitions(self) -> Sequence[InputPartition]:
        """The ranges as they are now; what comes later is not read."""
        headers_only = "data" not in self.columns.fieldNames()
        with JetStream(self.options.connection) as js:
            found = batch_ranges(js, self.options, self.bounds, headers_only=headers_only)
        return [Part(one) for one in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range."""
        return read_part(self.options, self.columns, partition)


def read_part(
    options: SourceOptions, columns: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Rows of a range as Arrow batches; none for Spark's empty stand-in."""
    if not isinstance(partition, Part):
        return
    schema = arrow_schema(columns)
    teller = Teller(options.connection.settings, options.progress_subject, partition.range)
    with reporting(), JetStream(options.connection, patient=True) as js:
        for chunk in read(js, partition.range):
            teller.heard(chunk)
            yield record_batch(chunk, schema, partition.range.stream)
    teller.finished()
