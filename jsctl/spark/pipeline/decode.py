"""Messages -> the view `input`: payload columns beside those of the message.

What cannot be decoded gets a text in `_error` and is split off; nothing is dropped in silence.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jsctl.spark.pipeline.payloads import PayloadSchema, columns_of, decoder
from jsctl.spark.pipeline.plan import payload_schema
from jsctl.spark.pipeline.specification.ddl import arrow_struct, ddl_of, parse_schema
from jsctl.spark.pipeline.specification.spec import Spec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ERROR, VALUE, CORRUPT = "_error", "value", "_corrupt"
ERROR_CHARACTERS_MAX = 300


def decoded(messages: "DataFrame", spec: Spec) -> "DataFrame":
    """The messages with `value` and `_error`, one of which is null unless there is no payload
    to decode."""
    kind = spec.decode.format
    if kind == "json":
        return _json(messages, spec.decode.schema)
    if kind == "text":
        return _text(messages)
    if kind in ("avro", "protobuf"):
        return _in_python(messages, payload_schema(spec))
    from pyspark.sql import functions as f

    return messages.withColumn(ERROR, f.lit(None).cast("string"))


def good(rows: "DataFrame", spec: Spec) -> "DataFrame":
    """The rows that were decoded, payload columns beside the message's own."""
    from pyspark.sql import functions as f

    if spec.decode.on_error == "fail" and spec.decode.format != "none":
        rows = rows.where(f.expr(_or_fail(spec)))
    else:
        rows = rows.where(f.col(ERROR).isNull())
    kept = [name for name in rows.columns if name != ERROR]
    taken = {name.lower() for name in kept}
    if spec.decode.format in ("json", "avro", "protobuf"):
        inner: Any = rows.schema[VALUE].dataType
        free = [name for name in inner.fieldNames() if name.lower() not in taken]
        return rows.select(*kept, *(f.col(VALUE)[name].alias(name) for name in free))
    return rows.select(*kept)


def bad(rows: "DataFrame") -> "DataFrame":
    """The messages that could not be decoded: their own columns and `error`."""
    from pyspark.sql import functions as f

    kept = [name for name in rows.columns if name not in (ERROR, VALUE)]
    return rows.where(f.col(ERROR).isNotNull()).select(*kept, f.col(ERROR).alias("error"))


def _or_fail(spec: Spec) -> str:
    """True, or an error that names the first message that does not fit."""
    text = (
        f"concat('message ', stream, '#', seq, ' on ', subject, ' is not {spec.decode.format}: ', "
        f"{ERROR}, '; decode.on_error: skip or dead_letter goes on without it')"
    )
    return f"CASE WHEN {ERROR} IS NULL THEN true ELSE raise_error({text}) IS NULL END"


def _json(messages: "DataFrame", schema: str) -> "DataFrame":
    from pyspark.sql import functions as f

    ddl = ddl_of(parse_schema(schema))
    parsed = f.from_json(
        f.col("data").cast("string"),
        f"{ddl}, `{CORRUPT}` STRING",
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT},
    )
    rows = messages.withColumn("_parsed", parsed)
    wrong = f.col("_parsed").isNull() | f.col("_parsed")[CORRUPT].isNotNull()
    shown = f.substring(f.col("data").cast("string"), 1, 80)
    text = f.concat(f.lit("it does not fit the schema: "), shown)
    columns = [f.col("_parsed")[one.name].alias(one.name) for one in parse_schema(schema)]
    value = f.when(wrong, None).otherwise(f.struct(*columns))
    rows = rows.withColumn(ERROR, f.when(wrong, text)).withColumn(VALUE, value)
    return rows.drop("_parsed")


def _text(messages: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f

    text = f.col("data").cast("string")
    rows = messages.withColumn(ERROR, f.when(~f.is_valid_utf8(text), f.lit("it is not UTF-8")))
    return rows.withColumn(VALUE, f.when(f.col(ERROR).isNull(), text))


def _in_python(messages: "DataFrame", schema: PayloadSchema) -> "DataFrame":
    """Decoded in workers, an Arrow array of payloads at a time."""
    import pyarrow as pa
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.functions import arrow_udf

    work = _Decode(schema)

    def run(payloads: pa.Array) -> pa.Array:  # Spark reads these annotations
        return work.decode(payloads)

    as_udf: Any = arrow_udf  # its types want the kind of function named, Spark finds it out
    ddl = ddl_of(columns_of(schema))
    decode = as_udf(run, f"struct<{VALUE}: struct<{_nested(ddl)}>, {ERROR}: string>")
    rows = messages.withColumn("_decoded", decode(f.col("data")))
    found = f.col("_decoded")
    return rows.withColumns({VALUE: found[VALUE], ERROR: found[ERROR]}).drop("_decoded")


def _nested(ddl: str) -> str:
    """Columns as they are written inside of STRUCT<>."""
    return ", ".join(
        f"`{one.name}`: {ddl_of((one,)).partition('` ')[2]}" for one in parse_schema(ddl)
    )


class _Decode:
    """Runs in a worker: payloads -> structs of value and error, one of them null."""

    def __init__(self, schema: PayloadSchema) -> None:
        self.schema = schema

    def decode(self, payloads: "pa.Array") -> "pa.Array":
        """The structs of one array."""
        import pyarrow as pa

        kind = arrow_struct(columns_of(self.schema))
        values, errors = _decoded_all(payloads.to_pylist(), decoder(self.schema), kind)
        columns = [values, pa.array(errors, pa.string())]
        return pa.StructArray.from_arrays(columns, names=[VALUE, ERROR])


def _decoded_all(
    payloads: list[bytes], decode: "Callable[[bytes], dict[str, Any]]", kind: "pa.DataType"
) -> "tuple[pa.Array, list[str | None]]":
    """The rows as one array and an error for each; values that do not fit are looked for only
    when there are any."""
    import pyarrow as pa

    rows: list[dict[str, Any] | None] = []
    errors: list[str | None] = []
    for payload in payloads:
        try:
            rows.append(decode(payload))
            errors.append(None)
        except ValueError as error:
            rows.append(None)
            errors.append(str(error)[:ERROR_CHARACTERS_MAX])
    try:
        return pa.array(rows, kind), errors
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        pass
    for at, row in enumerate(rows):
        try:
            pa.array([row], kind)
        except (pa.ArrowException, TypeError, OverflowError, ValueError) as error:
            rows[at] = None
            errors[at] = str(error)[:ERROR_CHARACTERS_MAX]
    return pa.array(rows, kind), errors
