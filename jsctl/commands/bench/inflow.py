"""What a connection brings to a client that acknowledges."""

from jsctl.client.raw import Frame, RawConnection
from jsctl.client.wire.frames import frame_of

ACK = b"+ACK"


class Inflow:
    """Messages in their order. With `double` the server has to answer every acknowledgement before
    the next message is taken; what comes meanwhile waits here."""

    def __init__(self, connection: RawConnection, answers: str, *, double: bool) -> None:
        self._connection = connection
        self._answers = answers.encode()
        self._double = double
        self._kept: list[Frame] = []

    async def listen(self) -> None:
        """For answers; what comes meanwhile is kept."""
        if self._double:
            self._connection.subscribe(self._answers.decode())
        self._kept += await self._connection.flush()

    async def read(self) -> list[Frame]:
        """The next ones, perhaps none."""
        found, self._kept = self._kept, []
        return found or await self._connection.read()

    async def rest(self) -> list[Frame]:
        """What has come and was not read, when the server has taken all that was written."""
        found, self._kept = self._kept, []
        return found + await self._connection.flush()

    async def acknowledge(self, frame: Frame) -> None:
        """Says that a message was taken."""
        if not self._double:
            self._connection.write(frame_of(frame.reply, ACK))
            return
        self._connection.write(frame_of(frame.reply, ACK, self._answers))
        answered = False
        while not answered:
            for one in await self._connection.read():
                if one.subject == self._answers:
                    answered = True
                else:
                    self._kept.append(one)
