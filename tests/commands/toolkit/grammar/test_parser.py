"""What a declaration demands of the words, and what its help page says."""

import pytest

from jsctl.commands.toolkit.grammar.help import command_help
from jsctl.commands.toolkit.grammar.parser import parse
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option
from jsctl.errors import UsageError

CHECK = Command(
    "check",
    "Checks a thing",
    "none:none",
    (Argument("name", "Whose", required=True),),
    (
        Option("low", "Lowest", Kind.INTEGER, required=True),
        Option("high", "Highest", Kind.INTEGER, required=True),
    ),
    details=("A long paragraph. " * 10, "  io.nats.monitor.lag-critical: 200"),
)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "required flags --low, --high not provided"),
        (("n", "--high", "0"), "required flag --low not provided"),
        (("--low", "1", "--high", "2"), "required argument 'name' not provided"),
        (("n", "--low", "x", "--high", "2"), "--low: expected a whole number, got 'x'"),
    ],
)
def test_what_is_required_is_asked_for(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(CHECK, (), words)
    assert str(caught.value) == message


def test_details_are_wrapped_below_the_help() -> None:
    lines = command_help(("jsctl", "check"), CHECK, full=False).splitlines()
    assert lines[2:4] == ["Checks a thing", ""]
    assert all(len(line) <= 80 for line in lines)
    assert "  io.nats.monitor.lag-critical: 200" in lines
