"""Which view shows a row."""

from jsctl.dashboard.model.snapshot import Consumer, RaftGroup, Server, Stream
from jsctl.dashboard.screens.view import View


def view_of(row: object) -> View | None:
    """A view of it, None if there is nothing more to see."""
    if isinstance(row, Stream):
        from jsctl.dashboard.screens.stream import StreamScreen

        return StreamScreen(row.key)
    if isinstance(row, Consumer):
        from jsctl.dashboard.screens.consumer import ConsumerScreen

        return ConsumerScreen(row.key)
    if isinstance(row, Server):
        from jsctl.dashboard.screens.server import ServerScreen

        return ServerScreen(row.name)
    if isinstance(row, RaftGroup):
        from jsctl.dashboard.screens.group import GroupScreen

        return GroupScreen(row.key)
    return None
