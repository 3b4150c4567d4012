"""Bodies of stored messages as `stream get` and `stream view` show them: as `nats` does."""

import re

import pytest

from jsctl.commands.toolkit.invocation.prompts import Prompts
from tests.commands.stream.test_find import Run, of_both

SEEN = {"text": "text\n\n\n", "a line\n": "a line\n\n", "": "nil body\n\n\n"}
"""Each ends its line and leaves one free below; what ended none itself leaves two."""


@of_both
def test_a_body_that_ends_its_line_itself_is_not_ended_twice(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    always = property(lambda _: True, lambda _, _value: None)
    monkeypatch.setattr(Prompts, "possible", always, raising=False)
    assert run("stream", "add", "BODIES", "--subjects", "bodies", "--defaults").code == 0
    for body in SEEN:
        assert run("pub", "bodies", body, "-J", "-H", "A:1").code == 0
    for seq, shown in enumerate(SEEN.values(), 1):
        got = run("stream", "get", "BODIES", str(seq)).out
        assert got.partition("\n\n")[2] == "Headers:\n  A: 1\n\n" + shown
    assert run("pub", "bodies", "plain", "-J").code == 0
    viewed = re.split(r"\[\d\] .*\n", run("stream", "view", "BODIES").out)
    assert viewed[1:] == [*("\n  A: 1\n" + shown for shown in SEEN.values()), "plain\n\n\n"]
