"""What views and the palette ask of the application: messages, which it alone acts on."""

from textual.message import Message

from jsctl.dashboard.actions.catalog import Action
from jsctl.dashboard.actions.plans import Target
from jsctl.dashboard.model.snapshot import Stream


class RowOpened(Message):
    """A row whose own view is wanted, if there is one."""

    def __init__(self, row: object) -> None:
        super().__init__()
        self.row = row


class ActionRequested(Message):
    """An action, which fits the target."""

    def __init__(self, action: Action, target: Target) -> None:
        super().__init__()
        self.action = action
        self.target = target


class PublishRequested(Message):
    """A message to be published; subject and body are what the dialog starts with."""

    def __init__(self, stream: Stream, subject: str, body: str) -> None:
        super().__init__()
        self.stream = stream
        self.subject = subject
        self.body = body


class RaftWatched(Message):
    """Whether somebody looks at all raft groups now."""

    def __init__(self, on: bool) -> None:
        super().__init__()
        self.on = on


class TabWanted(Message):
    """A tab of the main screen, whatever is shown now."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class ContextWanted(Message):
    """The connection of another context."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class ThemeWanted(Message):
    """Other colours."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
