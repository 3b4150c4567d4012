"""How answers leave for whoever asked: published here, or on the server that the request was at."""

from jsctl.broker.assets.engine import Engine
from jsctl.broker.checksums import Checksums
from jsctl.broker.peers.frames import encode_frames
from jsctl.broker.peers.items import Answered, PeerFrame
from jsctl.broker.peers.outbox import frame_subject
from jsctl.broker.routing.router import Router
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AnswerPublisher:
    """Accounts are named; those that are not known get nothing."""

    router: Router
    engine: Engine

    def here(self, account: str, subject: bytes, headers: bytes, payload: bytes) -> None:
        """Publish on this server."""
        found = self.router.accounts.get(account)
        if found is not None:
            self.router.publish(found, subject, payload, headers=headers)

    def on(
        self, account: str, subject: bytes, reply: bytes, headers: bytes, payload: bytes
    ) -> None:
        """Publish what somebody sent on, under the subject that was meant."""
        found = self.router.accounts.get(account)
        if found is not None:
            self.router.publish(found, subject, payload, reply=reply, headers=headers)

    def at(self, account: str, peer: str, subject: bytes, headers: bytes, payload: bytes) -> bool:
        """Publish on a peer alone, which is told that this was the answer; False without a link
        that can carry it there."""
        accounts = self.router.accounts
        found = accounts.get(account)
        news = self.engine.cluster.servers.get(peer)
        if found is None or news is None:
            return False
        link = self.router.publish_at(found, news.server_id, subject, headers, payload)
        if link is None:
            return False
        # The note is behind the answer: where it comes, the answer is there.
        answered = Answered(account, subject)
        note = PeerFrame(self.engine.options.me, answered=[answered])
        (pieces,) = encode_frames(note, Checksums())
        system = accounts.system or accounts.default
        data = b"".join(pieces)
        if not self.router.publish_behind(link, system, frame_subject(peer), data):
            self.engine.outbox.parcel(peer).answered.append(answered)
        return True
