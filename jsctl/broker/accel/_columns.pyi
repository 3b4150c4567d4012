from array import array
from collections.abc import Sequence
from typing import Any

def read_publishes(batch: list[Any], /) -> tuple[list[bytes], int, int, int] | None: ...
def encode_publishes(
    head: bytes, batch: list[Any], first_seq: int, time_ns: int, /
) -> tuple[bytes, array[int], array[int], array[int], list[bytes]]: ...
def encode_rows(
    head: bytes, rows: list[tuple[int, int, bytes, bytes, bytes]], /
) -> tuple[
    bytes, tuple[array[int], array[int], array[int], array[int], array[int], list[bytes]]
]: ...
def read_columns(
    buffer: bytes, start: int, end: int, /
) -> tuple[array[int], array[int], array[int], array[int], array[int], list[bytes]]: ...
def read_ids(buffer: bytes, start: int, end: int, /) -> list[bytes]: ...
def read_rows(
    buffer: bytes,
    begin: int,
    seqs: Sequence[int],
    offsets: Sequence[int],
    lengths: Sequence[int],
    bytes_max: int,
    /,
) -> list[tuple[int, int, bytes, bytes, bytes]]: ...
def entries_bytes(rows: list[tuple[int, int, bytes, bytes, bytes]], /) -> bytes: ...
def read_messages(
    data: bytes, begin: int, last_seq: int, body_bytes_max: int, most: int, /
) -> tuple[list[tuple[int, int, bytes, bytes, bytes]], int]: ...
def pack_ids(ids: list[bytes], first_seq: int, time_ns: int, /) -> bytes: ...
def ack_lines(
    replies: list[bytes],
    first_seq: int,
    verb: bytes,
    infix: bytes,
    form: tuple[bytes, bytes],
    /,
) -> bytes: ...
def ack_each(
    replies: list[bytes],
    first_seq: int,
    verb: bytes,
    infixes: list[bytes],
    form: tuple[bytes, bytes],
    /,
) -> list[bytes]: ...
def delivery_tails(
    front: bytes, rows: list[tuple[int, int, bytes, bytes, bytes]], first: int, pending: int, /
) -> list[bytes]: ...
def plain_acks(acks: list[Any], /) -> tuple[list[int], list[bytes], list[int]]: ...
