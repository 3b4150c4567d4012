"""The lane: however a client's bytes are cut, both loops and the steps without them agree; and what
streams do with a batch of messages at once, both do alike.
"""

import random

from jsctl.broker.accel.columns import Publish
from jsctl.broker.store.frame import frame_of
from tests.fuzz.mutate import cuts
from tests.fuzz.target import Target
from tests.support.column_twins import read_anything, same, written_and_read
from tests.support.lane_sides import disagreements
from tests.support.lane_tables import PLENTY, agree

MESSAGES = (
    b"PUB c.a 5\r\nhello\r\n", b"PUB c.b _I.1 3\r\nabc\r\n", b"PUB s.a 0\r\n\r\n",
    b"PUB q.l 1\r\nx\r\n",
    b"HPUB c.a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", b"HPUB s.a _I.2 12 12\r\nNATS/1.0\r\n\r\n\r\n",
    b"PUB d.a 2\r\nhi\r\n", b"PUB none _I.3 1\r\nx\r\n", b"PUB r.a $JS.ACK.x 1\r\nx\r\n",
    b"PUB s.x.1 1\r\nx\r\n", b"PUB s.x.2 _I.4 1\r\nx\r\n", b"PUB s..3 1\r\nx\r\n",
    b"PUB s.x. 1\r\nx\r\n",
    b"HPUB q.l 29 30\r\nNATS/1.0\r\nNats-Trace-Dest: t\r\n\r\nx\r\n",
)  # fmt: skip
CONNECTS = (
    b"",
    b',"no_responders":true',
    b',"echo":false,"no_responders":true',
    b',"headers":false',
    b',"user":"free"',
    b',"user":"free","no_responders":true',
)


class Lane(Target):
    """A publisher, with subscribers, sinks, a route and a queue group."""

    name = "lane"
    share = 0.2
    words = (
        *MESSAGES, *[message * 12 for message in MESSAGES[:4]], b"SUB c.* 9\r\n", b"UNSUB 9\r\n",
        b"UNSUB 7 2\r\n", b"PING\r\n", b"SUB q.l grp 8\r\n", b" ", b"\t", b"\r\n", b"0", b"pub ",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        runs = [message * 15 for message in MESSAGES[:5]]
        rows = b"".join(b"PUB c.%d _I.%d 2\r\n%02d\r\n" % (n, n, n) for n in range(10, 30))
        return [b"".join(MESSAGES), *runs, rows, b"".join(MESSAGES[::-1]) * 3]

    def run(self, data: bytes, rng: random.Random) -> None:
        connect = CONNECTS[int(rng.random() * len(CONNECTS))]
        found = disagreements(cuts(rng, data), connect)
        assert not found, "\n".join(found)


class LaneTables(Target):
    """The loops alone, stop by stop."""

    name = "lane-tables"
    share = 0.5
    words = (
        b"PUB o 1\r\nx\r\n", b"PUB t r 1\r\nx\r\n", b"PUB s 0\r\n\r\n", b"PUB q 1\r\nx\r\n",
        b"HPUB ss.1 2 3\r\nabc\r\n", b"PUB ss.22 0\r\n\r\n", b"PUB ooo.1.2 1\r\nx\r\n",
        b"HPUB m 2 3\r\nabc\r\n", b"PUB g.2 2\r\nxy\r\n" * 9, b"Nats-Trace-Dest",
        b" ", b"\t", b"\r\n",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [b"".join(self.words[:6]), self.words[0] * 20, self.words[4] * 20, self.words[5]]

    def run(self, data: bytes, rng: random.Random) -> None:
        budget = PLENTY if rng.random() < 0.7 else 1 + int(rng.random() * 200)
        agree(data, int(rng.random() * 8), int(rng.random() * (1 << 64)), budget)


class Columns(Target):
    """A batch of publishes whose parts are what is between two marks; and the bytes as records."""

    name = "columns"
    share = 0.5
    mark = b"|"
    words = (
        b"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n", b"NATS/1.0\r\nNats-Msg-Id:", b"\r\n", b".$FI",
        b"_INBOX.1", mark, mark * 3, b" ", b"\0" * 30,
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        rows = [(seq, 7, b"s.%d" % seq, b"", b"x" * seq) for seq in range(1, 9)]
        headed = [(*row[:3], self.words[0], row[4]) for row in rows]
        texts = [b"s|r|" + self.words[0] + b"|payload|" + b"t|||"]
        texts.append(b"$JS.ACK.S.C.1.%d.2.3.4|r|||" % (1 << 64) + b"$JS.ACK.S.C.1.7.2|||+ACK|")
        return [*[frame_of(some).buffer[36:] for some in (rows, headed)], *texts]

    def run(self, data: bytes, rng: random.Random) -> None:
        read_anything(data, 0, len(data))
        read_anything(data, int(rng.random() * 40), len(data) - int(rng.random() * 4))
        parts = data.split(self.mark)
        parts += [b""] * (-len(parts) % 4)
        batch: list[Publish] = [
            (*parts[at : at + 4], None)  # type: ignore[misc]  # Four of them
            for at in range(0, len(parts), 4)
        ]
        seq = int(rng.random() * (1 << 63))
        written_and_read(batch, parts[0], seq, -seq)
        replies = [one[1] for one in batch if one[1]]
        same(lambda loops: loops.ack_lines(replies, seq, b"MSG ", b" 1 ", (b"{", b"}")))
        infixes = [one[0] for one in batch if one[1]]
        same(lambda loops: loops.ack_each(replies, seq, b"MSG ", infixes, (b"{", b"}")))
        same(lambda loops: loops.plain_acks(batch))
        rows = [(seq, -seq, one[0], b"", one[3]) for one in batch]
        same(lambda loops: loops.delivery_tails(parts[0], rows, seq, len(rows) - 2))


TARGETS = (Lane, LaneTables, Columns)
