"""How answers leave for whoever asked: published here, or on the server that the request was at."""

from jsctl.broker.assets.engine import Engine
from jsctl.broker.routing.router import Router
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AnswerPublisher:
    """Accounts are named; those that are not known get nothing."""

    router: Router
    engine: Engine

    def here(self, account: str, subject: bytes, headers: bytes, payload: bytes) -> None:
        """Publish on this server, unless whoever asked wants another request to be made of it."""
        found = self.router.accounts.get(account)
        if found is not None:
            self.router.answer(found, subject, payload, headers)

    def on(
        self, account: str, subject: bytes, reply: bytes, headers: bytes, payload: bytes
    ) -> None:
        """Publish what somebody sent on, under the subject that was meant."""
        found = self.router.accounts.get(account)
        if found is not None:
            self.router.publish(found, subject, payload, reply=reply, headers=headers)

    def at(self, account: str, peer: str, subject: bytes, headers: bytes, payload: bytes) -> bool:
        """Have a peer publish it; False without a link that can carry it there."""
        found = self.router.accounts.get(account)
        news = self.engine.cluster.servers.get(peer)
        if found is None or news is None:
            return False
        return self.router.answer_at(found, news.server_id, subject, headers, payload)
