"""Which view shows a row."""

from jsctl.dashboard.model.snapshot import Consumer, RaftGroup, Server, Stream
from jsctl.dashboard.screens.consumer import ConsumerScreen
from jsctl.dashboard.screens.group import GroupScreen
from jsctl.dashboard.screens.host import Host
from jsctl.dashboard.screens.server import ServerScreen
from jsctl.dashboard.screens.stream.screen import StreamScreen
from jsctl.dashboard.screens.view import View


def view_of(row: object, host: Host) -> View | None:
    """A view of it, None if there is nothing more to see."""
    if isinstance(row, Stream):
        return StreamScreen(host, row.key)
    if isinstance(row, Consumer):
        return ConsumerScreen(host, row.key)
    if isinstance(row, Server):
        return ServerScreen(host, row.name)
    if isinstance(row, RaftGroup):
        return GroupScreen(host, row.key)
    return None
