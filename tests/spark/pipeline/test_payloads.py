"""Schemas without Spark: column types as text and as Arrow, Avro and Protobuf payloads."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from jsctl.errors import UsageError
from jsctl.spark.pipeline.payloads import PayloadSchema, columns_ddl, columns_of, decoder
from jsctl.spark.pipeline.specification.ddl import arrow_struct, ddl_of, parse_schema

fastavro = pytest.importorskip("fastavro")
pa = pytest.importorskip("pyarrow")

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
                                   "scale": 2}},
        {"name": "ship", "type": {"type": "record", "name": "Ship", "fields": [
            {"name": "city", "type": "string"}]}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "next", "type": "Ship"},
    ],
}  # fmt: skip
ROW = {
    "id": 7,
    "tags": ["a", "b"],
    "at": datetime(2026, 1, 2, tzinfo=UTC),
    "price": Decimal("1.50"),
    "ship": {"city": "Oslo"},
    "counts": {"x": 1},
    "next": {"city": "Bonn"},
}


@pytest.mark.parametrize(
    "text",
    [
        "`id` BIGINT, `price` DECIMAL(10, 2)",
        "`a` ARRAY<STRING>, `m` MAP<STRING, ARRAY<INT>>",
        "`s` STRUCT<`x`: DOUBLE, `y`: STRUCT<`z`: BOOLEAN>>",
    ],
)
def test_schemas_survive_a_round_trip(text: str) -> None:
    assert ddl_of(parse_schema(text)) == text
    assert arrow_struct(parse_schema(text)).num_fields == len(parse_schema(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id", "column id has no type"),
        ("id BIGNIT", "unknown type BIGNIT"),
        ("id BIGINT amount DOUBLE", "expected a comma"),
        ("id INT, ID INT", "stands twice"),
        ("a ARRAY<INT", "expected '>'"),
        ("a DECIMAL(99)", "1 to 38 digits"),
        ("a " + "ARRAY<" * 40 + "INT", "nested deeper"),
        ("a INT NOT NOLL", "expected NULL"),
        ("id %", "cannot read"),
        ("", "expected 'more'"),
    ],
)
def test_bad_schemas_say_why(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_schema(text)


def avro_bytes(row: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(ORDER), row)
    return stream.getvalue()


def test_avro() -> None:
    schema = PayloadSchema("avro", json.dumps(ORDER).encode())
    assert columns_ddl(schema) == (
        "`id` BIGINT, `tags` ARRAY<STRING>, `at` TIMESTAMP, `price` DECIMAL(9, 2), "
        "`ship` STRUCT<`city`: STRING>, `counts` MAP<STRING, INT>, `next` STRUCT<`city`: STRING>"
    )
    row = decoder(schema)(avro_bytes(ROW))
    assert row == ROW
    assert pa.array([row], arrow_struct(columns_of(schema))).is_valid().to_pylist() == [True]


@pytest.mark.parametrize(
    "payload", [b"", b"\xff" * 12, avro_bytes(ROW)[:-3], avro_bytes(ROW) + b"x"]
)
def test_avro_that_does_not_fit(payload: bytes) -> None:
    decode = decoder(PayloadSchema("avro", json.dumps(ORDER).encode()))
    with pytest.raises(ValueError):
        decode(payload)


def test_a_schema_id_in_front() -> None:
    framed = PayloadSchema("avro", json.dumps(ORDER).encode(), framing="confluent")
    assert decoder(framed)(b"\0\0\0\0\x01" + avro_bytes(ROW))["id"] == 7
    with pytest.raises(ValueError):
        decoder(framed)(avro_bytes(ROW))


@pytest.mark.parametrize("definition", [b"{", b'"string"', b'{"type": "record"}', b"[]"])
def test_what_is_no_avro_schema(definition: bytes) -> None:
    with pytest.raises(UsageError):
        columns_of(PayloadSchema("avro", definition))


def protobuf_file() -> bytes:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

    files = FileDescriptorSet()
    file = files.file.add(name="shop.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    kinds = FieldDescriptorProto
    order.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    order.field.add(name="tags", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_REPEATED)
    order.field.add(
        name="ship",
        number=3,
        type=kinds.TYPE_MESSAGE,
        type_name=".shop.Ship",
        label=kinds.LABEL_OPTIONAL,
    )
    ship = file.message_type.add(name="Ship")
    ship.field.add(name="city", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    return files.SerializeToString()


def test_protobuf() -> None:
    schema = PayloadSchema("protobuf", protobuf_file(), "shop.Order")
    assert columns_ddl(schema) == "`id` BIGINT, `tags` ARRAY<STRING>, `ship` STRUCT<`city`: STRING>"
    decode = decoder(schema)
    payload = b"\x08\x96\x01\x12\x01a\x12\x01b\x1a\x06\x0a\x04Oslo"
    assert decode(payload) == {"id": 150, "tags": ["a", "b"], "ship": {"city": "Oslo"}}
    assert decode(b"") == {"id": 0, "tags": [], "ship": None}
    with pytest.raises(ValueError):
        decode(b"\xff\xff\xff")


def test_a_message_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"it has shop\.Order, shop\.Ship"):
        columns_of(PayloadSchema("protobuf", protobuf_file(), "shop.Ordr"))
    with pytest.raises(UsageError, match="descriptor set"):
        columns_of(PayloadSchema("protobuf", b"\xff\xff", "shop.Order"))
