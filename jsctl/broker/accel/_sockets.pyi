from collections.abc import Sequence

def look(
    epoll: int,
    wait_ms: int,
    plain: dict[int, int],
    chunks: list[tuple[int, bytes]],
    buffer: bytearray | memoryview,
    least: int,
    room: int,
    /,
) -> tuple[int, list[tuple[int, int]] | None]: ...
def send(
    writes: list[tuple[int, bytes]], direct: dict[int, int], /
) -> Sequence[tuple[int, bytes, int]]: ...
