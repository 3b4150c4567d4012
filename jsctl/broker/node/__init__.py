"""The whole broker without I/O. `Node.turn(inputs, now_ns) -> outputs` is all there is."""

from jsctl.broker.node.node import Node

__all__ = ["Node"]
