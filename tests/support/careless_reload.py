"""`jsctl broker` whose reloads do what they must not: for tests that have to notice.

Run as a program. What the first reload does besides is the word in the file `careless` beside the
configuration: it hangs up on all clients, or it loses, repeats or never takes one message of the
many that are on their way.
"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from jsctl.broker.app import main, real_node
from jsctl.broker.node import Node
from jsctl.broker.options import Options
from jsctl.broker.server.turns import NodeLike
from jsctl.broker.turn import ConnKind, TurnInputs, TurnOutputs

FILE = "careless"
SENT = re.compile(rb"MSG core\.\S+ \d+ 100\r\n.{100}\r\n", re.DOTALL)
SAID = re.compile(rb"PUB core\.\S+ +100\r\n.{100}\r\n", re.DOTALL)


class CarelessNode:
    """The broker's node, and a bug that waits for a reload."""

    def __init__(self, node: Node, bug: str) -> None:
        self._node = node
        self._bug = bug
        self._armed = False
        self._clients: set[int] = set()

    def listening(self, kind: str, host: str, port: int, reached_at: Sequence[str]) -> None:
        self._node.listening(kind, host, port, reached_at)

    def start(self, now_ns: int) -> TurnOutputs:
        return self._node.start(now_ns)

    def try_out(self, options: Options) -> None:
        self._node.try_out(options)

    def reload(self, options: Options, *, by_claims: bool = False) -> None:
        self._node.reload(options, by_claims=by_claims)
        self._armed = True

    def turn(self, inputs: TurnInputs, now_ns: int) -> TurnOutputs:
        self._clients |= {one.conn for one in inputs.accepted if one.kind is ConnKind.CLIENT}
        if self._bug == "never takes":
            self._change(inputs.chunks, SAID, lambda found: b"")
        outputs = self._node.turn(inputs, now_ns)
        if self._bug == "loses":
            self._change(outputs.writes, SENT, lambda found: b"")
        if self._bug == "repeats":
            self._change(outputs.writes, SENT, lambda found: found[0] * 2)
        if self._bug == "hangs up" and self._armed:
            self._done()
            outputs.closes += [(conn, "careless") for conn in self._clients]
        return outputs

    def settle(self, now_ns: int) -> int | None:
        return self._node.settle(now_ns)

    @property
    def unfinished(self) -> bool:
        return self._node.unfinished

    @property
    def assets(self) -> int:
        """See `NodeLike`."""
        return self._node.assets

    def _change(
        self,
        parts: list[tuple[int, bytes]],
        pattern: re.Pattern[bytes],
        change: Callable[[re.Match[bytes]], bytes],
    ) -> None:
        """One message, in the first turn that has a whole one."""
        for number, (conn, data) in enumerate(parts):
            if self._armed and pattern.search(data):
                parts[number] = (conn, pattern.sub(change, data, count=1))
                self._done()

    def _done(self) -> None:
        self._armed, self._bug = False, ""


def careless_node(options: Options, server_id: str, store: Path | None) -> NodeLike:
    """The broker's node with the bug that is asked for."""
    node = real_node(options, server_id, store)
    assert isinstance(node, Node)
    return CarelessNode(node, (Path(options.config_file).parent / FILE).read_text())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], careless_node))
