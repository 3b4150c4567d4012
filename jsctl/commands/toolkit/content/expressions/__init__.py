"""Expressions that choose things: `state.messages > 100 && config.name matches "^ORD"`.

The words are those of the language that `nats` uses for `--expression` and `--filter`. An
expression is compiled once into closures; its length and depth, and the size of what it makes, are
bounded.
"""

from collections.abc import Callable, Mapping

from jsctl.commands.toolkit.content.expressions.builtins import FUNCTIONS
from jsctl.commands.toolkit.content.expressions.folding import Environment
from jsctl.commands.toolkit.content.expressions.lexing import tokens_of
from jsctl.commands.toolkit.content.expressions.reading import Reader
from jsctl.errors import UsageError

LENGTH_MAX = 10_000
OF_ASSETS = frozenset(("config", "state", "info"))
"""What expressions about streams and consumers can ask for."""

_WRONG = (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError, OverflowError)


def compiled(
    source: str,
    functions: Mapping[str, Callable[..., object]] | None = None,
    *,
    names: frozenset[str] | None = None,
) -> Callable[[Environment], bool]:
    """A test over named values; raises UsageError for what is no expression.

    `functions` are some beside those that every expression has, `names` all values that there are:
    others are refused, or nothing where it is not known which there are.
    One that looks at no value is tried here, as it would be wrong about all that there is.
    The test itself raises UsageError when its values do not fit, as text against a number.
    """
    if len(source) > LENGTH_MAX:
        raise UsageError("invalid expression: too long")
    reader = Reader(tokens_of(source), {**FUNCTIONS, **(functions or {})}, names)
    code = reader.whole()

    def test(environment: Environment) -> bool:
        try:
            found = code(environment)
        except _WRONG as error:
            raise UsageError(f"invalid expression: {error}") from None
        except RecursionError:
            raise UsageError("invalid expression: what it makes is too deep") from None
        if not isinstance(found, bool):
            raise UsageError("invalid expression: it does not give true or false")
        return found

    if not reader.looks:
        test({})
    return test
