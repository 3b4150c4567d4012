"""Keys that are pressed while something is watched."""

import os
import pty
import termios

import pytest

from jsctl.commands.toolkit.invocation.keys import TYPED_MAX, Keys
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Server
from tests.support.interrupted import PATIENCE_S, running, until

HELP = "q leaves"


class Settings:
    """What keys change."""

    def __init__(self) -> None:
        self.count = 0
        self.limit = 7

    def more(self) -> None:
        self.count += 1

    def limited(self, text: str) -> None:
        self.limit = int(text)

    def keys(self) -> Keys:
        return Keys(HELP, {"m": self.more}, {"n": ("limit", self.limited)})


def pressed(keys: Keys, text: str) -> str:
    for key in text:
        keys.press(key)
    return keys.line


def test_keys_do_what_they_are_there_for() -> None:
    settings = Settings()
    keys = settings.keys()
    assert pressed(keys, "mxm") == HELP
    assert (settings.count, keys.left) == (2, False)
    assert pressed(keys, "q") == HELP
    assert keys.left


def test_answers_are_typed_behind_a_key() -> None:
    settings = Settings()
    keys = settings.keys()
    assert pressed(keys, "n") == "limit: "
    assert pressed(keys, "12qm\x7f\x7f3") == "limit: 123"
    assert (settings.limit, settings.count, keys.left) == (7, 0, False)
    assert pressed(keys, "\r") == HELP
    assert settings.limit == 123
    assert "invalid literal" in pressed(keys, "nx\n")
    assert (settings.limit, pressed(keys, "m")) == (123, HELP)
    assert len(pressed(keys, "n" + "9" * 2 * TYPED_MAX)) == len("limit: ") + TYPED_MAX
    assert pressed(keys, "\x1b").count("\x1b") == 0


@pytest.mark.processes
def test_top_listens_to_keys_and_leaves_the_terminal_as_it_was(server: Server) -> None:
    system = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    screen, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    with running(("-s", server.url, *system, "top", "n1"), terminal) as process:
        assert b"SUBSCRIPTIONS" not in until(screen, b"LAST_ACTIVITY", 2)
        os.write(screen, b"s")
        until(screen, b"SUBSCRIPTIONS", 1)
        os.write(screen, b"obogus\r")
        until(screen, b"cannot sort by 'bogus'", 1)
        os.write(screen, b"orrt\rn1x\r")
        until(screen, b"'1x' is no number of connections", 1)
        os.write(screen, b"q")
        assert until(screen, b"\x1b[?1049l", 1)
        assert process.wait(PATIENCE_S) == 0
        assert termios.tcgetattr(terminal) == before
    os.close(terminal)
    os.close(screen)
