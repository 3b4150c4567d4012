"""Seeds of nkeys in a configuration."""

from collections.abc import Callable

from jsctl.broker.conf.fields import Reading, text
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.nkey import KeyKind, is_seed


def user_seed(what: str) -> Callable[[ConfigNode, Reading], str]:
    """Reads the seed of a user's nkey; it is not repeated in errors."""

    def read(node: ConfigNode, reading: Reading) -> str:
        value = text(node, reading)
        if not is_seed(value, KeyKind.USER):
            raise node.error(f"{what} is not a valid seed", "it begins with SU")
        return value

    return read
