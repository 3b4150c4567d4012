"""The values of a command as its function gets them."""

from jsctl.commands.toolkit.grammar.values import Value
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.output import make_output
from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.settings import Settings


def test_a_call_converts_its_values() -> None:
    values: dict[str, Value] = {
        "n": "5",
        "d": "2s",
        "size": "1K",
        "list": ("a,b c", "d"),
        "map": ("k=v:w", "x:y=z"),
        "on": True,
        "off": False,
        "none": None,
    }
    output = make_output("", "", {})
    call = Call(values, {"none": "true", "text": "def"}, Settings(), output, Prompts())
    assert (call.integer("n"), call.duration("d"), call.size("size")) == (5, 2 * 10**9, 1024)
    assert call.words("list") == ("a", "b", "c", "d")
    assert call.mapping("map") == {"k": "v:w", "x": "y=z"}
    assert (call.switch("on"), call.switch("off"), call.switch("none")) == (True, False, None)
    assert (call.flag("none"), call.flag("off"), call.text("text")) == (True, False, "def")
    assert (call.given("off"), call.given("none"), call.given("text")) == (True, False, False)
