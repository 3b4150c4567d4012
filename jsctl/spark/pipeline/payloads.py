"""Payload bytes -> rows: Avro and Protobuf, decoded in Python inside Spark's workers.

Spark's own functions for both need jars from elsewhere; the libraries used here come with pip.
A schema gives the columns once, on the driver; a `Decoder` is made in each worker from the same
bytes, so that nothing but plain data travels.
"""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsctl.errors import JsctlError, UsageError
from jsctl.spark.pipeline.specification.ddl import Field, Type, ddl_of

CONFLUENT_MAGIC = 0
CONFLUENT_BYTES = 5
DEPTH_MAX = 16
"""Messages may refer to themselves; columns cannot."""
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PayloadSchema:
    """What a worker needs to decode: plain data only."""

    format: str
    definition: bytes
    message: str = ""
    framing: str = "none"


def columns_of(schema: PayloadSchema) -> tuple[Field, ...]:
    """The columns of a payload. Raises UsageError for a schema that cannot be read."""
    return _FORMATS[schema.format][0](schema)


def columns_ddl(schema: PayloadSchema) -> str:
    """The same as text for Spark."""
    return ddl_of(columns_of(schema))


def decoder(schema: PayloadSchema) -> Callable[[bytes], Record]:
    """A function from payload to row; it raises ValueError for a payload that does not fit."""
    decode = _FORMATS[schema.format][1](schema)
    return _unframed(decode) if schema.framing == "confluent" else decode


def _unframed(decode: Callable[[bytes], Record]) -> Callable[[bytes], Record]:
    def run(payload: bytes) -> Record:
        if len(payload) < CONFLUENT_BYTES or payload[0] != CONFLUENT_MAGIC:
            raise ValueError("the payload does not start with a schema id")
        return decode(payload[CONFLUENT_BYTES:])

    return run


def missing(package: str, what: str) -> JsctlError:
    """The error for an optional library that is not installed."""
    return JsctlError(
        f"{what} needs the package {package}",
        hints=(
            "pip install 'jsctl[formats]'"
            if package != "deltalake"
            else "pip install 'jsctl[delta]'",
        ),
    )


# Avro


_AVRO: Mapping[str, str] = {
    "string": "STRING",
    "enum": "STRING",
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "fixed": "BINARY",
}
_AVRO_LOGICAL: Mapping[str, str] = {
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "uuid": "STRING",
}


def _avro_schema(schema: PayloadSchema) -> Any:
    try:
        import fastavro
    except ImportError:
        raise missing("fastavro", "decoding Avro") from None
    try:
        return fastavro.parse_schema(json.loads(schema.definition))
    except Exception as error:  # noqa: BLE001 - the library has no common base for its errors
        raise UsageError(f"decode.schema_file is not an Avro schema: {error}") from None


def _avro_columns(schema: PayloadSchema) -> tuple[Field, ...]:
    parsed = _avro_schema(schema)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise UsageError("decode.schema_file: the top of the Avro schema must be a record")
    return _avro_type(parsed, {}, 0).inner


def _avro_type(kind: Any, named: dict[str, Any], depth: int) -> Type:
    if depth > DEPTH_MAX:
        raise UsageError(f"decode.schema_file: types are nested deeper than {DEPTH_MAX}")
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        if len(others) != 1:
            raise UsageError("decode.schema_file: a union may have null and one other type only")
        return _avro_type(others[0], named, depth)
    if isinstance(kind, str):
        return Type(_AVRO[kind]) if kind in _AVRO else _avro_type(named[kind], named, depth + 1)
    if "name" in kind:
        named[kind["name"]] = kind
    return _avro_complex(kind, named, depth)


def _avro_complex(kind: dict[str, Any], named: dict[str, Any], depth: int) -> Type:
    name, logical = kind["type"], kind.get("logicalType", "")
    if logical == "decimal":
        return Type("DECIMAL", digits=(kind["precision"], kind.get("scale", 0)))
    if logical in _AVRO_LOGICAL:
        return Type(_AVRO_LOGICAL[logical])
    if name == "record":
        fields = (
            Field(one["name"], _avro_type(one["type"], named, depth + 1)) for one in kind["fields"]
        )
        return Type("STRUCT", tuple(fields))
    if name == "array":
        return Type("ARRAY", (Field("element", _avro_type(kind["items"], named, depth + 1)),))
    if name == "map":
        value = Field("value", _avro_type(kind["values"], named, depth + 1))
        return Type("MAP", (Field("key", Type("STRING")), value))
    return _avro_type(name, named, depth + 1)


def _avro_decoder(schema: PayloadSchema) -> Callable[[bytes], Record]:
    parsed = _avro_schema(schema)
    import fastavro

    def run(payload: bytes) -> Record:
        stream = io.BytesIO(payload)
        try:
            found = fastavro.schemaless_reader(stream, parsed, None)
        except Exception as error:  # noqa: BLE001 - damaged bytes raise nearly anything
            raise ValueError(f"not this Avro record: {error or type(error).__name__}") from None
        if stream.tell() != len(payload):
            raise ValueError(f"{len(payload) - stream.tell()} bytes follow the Avro record")
        assert isinstance(found, dict)
        return {key: str(value) if _is_uuid(value) else value for key, value in found.items()}

    return run


def _is_uuid(value: object) -> bool:
    return type(value).__name__ == "UUID"


# Protobuf


_PROTOBUF = {
    "TYPE_DOUBLE": "DOUBLE", "TYPE_FLOAT": "FLOAT", "TYPE_INT64": "BIGINT", "TYPE_SINT64": "BIGINT",
    "TYPE_SFIXED64": "BIGINT", "TYPE_UINT64": "DECIMAL", "TYPE_FIXED64": "DECIMAL",
    "TYPE_INT32": "INT", "TYPE_SINT32": "INT", "TYPE_SFIXED32": "INT", "TYPE_UINT32": "BIGINT",
    "TYPE_FIXED32": "BIGINT", "TYPE_BOOL": "BOOLEAN", "TYPE_STRING": "STRING",
    "TYPE_BYTES": "BINARY", "TYPE_ENUM": "STRING",
}  # fmt: skip
_UNSIGNED_DIGITS = (20, 0)
_TIMESTAMP = "google.protobuf.Timestamp"


def _protobuf_descriptor(schema: PayloadSchema) -> Any:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.message import DecodeError
    except ImportError:
        raise missing("protobuf", "decoding Protobuf") from None
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(schema.definition)
    except DecodeError:
        raise UsageError(
            "decode.schema_file is not a descriptor set",
            hints=("protoc --include_imports --descriptor_set_out=FILE orders.proto writes one",),
        ) from None
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files.file:
            pool.Add(file)
        return pool.FindMessageTypeByName(schema.message)
    except (KeyError, TypeError):
        names = [f"{f.package}.{m.name}".strip(".") for f in files.file for m in f.message_type]
        known = ", ".join(names) or "none"
        raise UsageError(
            f"decode.message: no message {schema.message} in decode.schema_file; it has {known}"
        ) from None


def _protobuf_columns(schema: PayloadSchema) -> tuple[Field, ...]:
    return _protobuf_fields(_protobuf_descriptor(schema), 0)


def _protobuf_fields(message: Any, depth: int) -> tuple[Field, ...]:
    if depth > DEPTH_MAX:
        raise UsageError(f"decode.message: {message.full_name} refers to itself")
    return tuple(Field(one.name, _protobuf_field(one, depth)) for one in message.fields)


def _protobuf_field(field: Any, depth: int) -> Type:
    if _is_map(field):
        parts = field.message_type.fields_by_name
        key, value = (_protobuf_single(parts[name], depth) for name in ("key", "value"))
        return Type("MAP", (Field("key", key), Field("value", value)))
    single = _protobuf_single(field, depth)
    return Type("ARRAY", (Field("element", single),)) if field.is_repeated else single


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _protobuf_single(field: Any, depth: int) -> Type:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return Type("TIMESTAMP")
        return Type("STRUCT", _protobuf_fields(field.message_type, depth + 1))
    name = _PROTOBUF[_protobuf_kind(field)]
    return Type(name, digits=_UNSIGNED_DIGITS if name == "DECIMAL" else (0, 0))


def _protobuf_kind(field: Any) -> str:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    return str(FieldDescriptorProto.Type.Name(field.type))


def _protobuf_decoder(schema: PayloadSchema) -> Callable[[bytes], Record]:
    descriptor = _protobuf_descriptor(schema)
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    make = GetMessageClass(descriptor)

    def run(payload: bytes) -> Record:
        message = make()
        try:
            message.ParseFromString(payload)
        except DecodeError as error:
            raise ValueError(f"not this Protobuf message: {error}") from None
        return _protobuf_row(message)

    return run


def _protobuf_row(message: Any) -> Record:
    row: Record = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            inner = field.message_type.fields_by_name["value"]
            row[field.name] = [(key, _protobuf_value(inner, value[key])) for key in value]
        elif field.is_repeated:
            row[field.name] = [_protobuf_value(field, one) for one in value]
        elif field.has_presence and not message.HasField(field.name):
            row[field.name] = None
        else:
            row[field.name] = _protobuf_value(field, value)
    return row


def _protobuf_value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            from datetime import UTC

            return value.ToDatetime(tzinfo=UTC)
        return _protobuf_row(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    return value


_FORMATS: Mapping[
    str,
    tuple[
        Callable[[PayloadSchema], tuple[Field, ...]],
        Callable[[PayloadSchema], Callable[[bytes], Record]],
    ],
] = {
    "avro": (_avro_columns, _avro_decoder),
    "protobuf": (_protobuf_columns, _protobuf_decoder),
}
