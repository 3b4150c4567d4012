"""The error table and what is made of it; the status table."""

import pytest

from jsctl.api.codec import dumps
from jsctl.api.error_table import ROWS
from jsctl.api.errors import ApiError, api_error
from jsctl.api.responses import ApiResponse
from jsctl.api.status import IDLE_HEARTBEAT, MAX_REQUEST_BATCH, header_block, parse_status


def test_the_table_has_every_error_once() -> None:
    assert len(ROWS) == 226
    assert len({row[0] for row in ROWS}) == 226
    assert len({row[2] for row in ROWS}) == 226


def test_errors_are_made_by_name() -> None:
    error = api_error("JSStreamNotFoundErr")
    assert (error.code, error.err_code, str(error)) == (404, 10059, "stream not found (10059)")
    assert error.name == "JSStreamNotFoundErr"
    assert api_error("JSInvalidJSONErr", err="x").description == "invalid JSON: x"
    assert ApiError.of(error.body()).args == error.args
    with pytest.raises(KeyError):
        api_error("NoSuchErr")


def test_an_error_reply_has_the_servers_shape() -> None:
    reply = ApiResponse(type="t", error=api_error("JSStreamNotFoundErr").body())
    assert dumps(reply) == (
        b'{"type":"t","error":{"code":404,"err_code":10059,"description":"stream not found"}}'
    )


def test_status_headers() -> None:
    block = header_block(IDLE_HEARTBEAT, (("Nats-Last-Consumer", "3"),))
    assert block == b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 3\r\n\r\n"
    assert parse_status(block) == (100, "Idle Heartbeat")
    assert parse_status(header_block(MAX_REQUEST_BATCH, limit=5)) == (
        409,
        "Exceeded MaxRequestBatch of 5",
    )
    assert parse_status(b"NATS/1.0 503\r\n\r\n") == (503, "")
    assert parse_status(b"NATS/1.0\r\nA: b\r\n\r\n") == (0, "")
