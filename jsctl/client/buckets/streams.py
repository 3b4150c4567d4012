"""The stream that a bucket is, of either kind: looked up and deleted, in the words of buckets."""

from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamInfo
from jsctl.client.worded import not_found, worded

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

STREAM_NOT_FOUND, NO_MESSAGE = 10059, 10037


async def bucket_stream(manager: "Manager", stream: str) -> StreamInfo:
    """What it is. Raises NotFound."""
    try:
        return await manager.stream_info(stream)
    except ApiError as error:
        if error.err_code == STREAM_NOT_FOUND:
            raise not_found("bucket not found") from None
        raise worded(error) from None


async def delete_bucket_stream(manager: "Manager", stream: str, bucket: str) -> None:
    """Take the bucket away with all that is in it. Raises NotFound."""
    try:
        await manager.delete_stream(stream)
    except ApiError as error:
        if error.err_code != STREAM_NOT_FOUND:
            raise worded(error) from None
        raise not_found(f"bucket not found: {bucket}\n{worded(error)}") from None
