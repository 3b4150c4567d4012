"""Templates are read, run and refused as by Go's library, whose answers are kept beside this."""

import json
from pathlib import Path

import pytest

from jsctl.commands.toolkit.templating.parsing import TemplateError
from jsctl.commands.toolkit.templating.running import Template
from jsctl.commands.toolkit.templating.values import Callee, Record

ANSWERS = [tuple(row) for row in json.loads(Path(__file__).with_name("answers.json").read_text())]
"""A template, what came of it, and how it was refused: written by a Go program with the functions
and data of this file; most templates were made of others by chance."""

FUNCTIONS = {
    **{name: Callee(lambda: 7) for name in ("Count", "Cnt")},
    "Unix": Callee(lambda: 5),
    "Time": Callee(lambda: "3:04PM"),
    "ID": Callee(lambda: "IDIDID"),
    "Request": Callee(lambda: "req"),
    "Random": Callee(lambda _low, _high: "rrr", ("int", "int")),
    "list": Callee(lambda *values: list(values), (), "any"),
    "dict": Callee(lambda: {"a": 1, "b": "x", "c": [1, 2.5, "z"], "n": None}),
}
FIELDS = {
    "Cnt": 7,
    "Count": 7,
    "Unix": 5,
    "UnixNano": 6,
    "TimeStamp": "stamp",
    "Time": "3:04PM",
    "Request": "req",
}
DATA = Record("*main.Data", FIELDS, {"ID": FUNCTIONS["ID"]})


def answer(text: str) -> tuple[str | None, str | None]:
    """What comes of it, or how it is refused."""
    try:
        return Template("body", text, FUNCTIONS).run(DATA), None
    except TemplateError as error:
        return None, str(error)


def test_every_template_is_answered_as_by_go() -> None:
    wrong = [(text, answer(text), (out, error)) for text, out, error in ANSWERS]
    assert [row for row in wrong if row[1] != row[2]] == []
    assert len(ANSWERS) > 500


@pytest.mark.parametrize(
    "text",
    [
        "{{" + "(" * 5000 + "1" + ")" * 5000 + "}}",
        '{{define "t"}}{{template "t"}}{{end}}{{template "t"}}',
        "{{range 99999999999}}{{end}}",
        '{{printf "%99999999d" 1}}x' * 2,
        "{{if 1}}" * 5000 + "{{end}}" * 5000,
    ],
)
def test_a_template_that_asks_for_too_much_is_answered(text: str) -> None:
    out, error = answer(text)
    assert (out is None) != (error is None)


def test_other_delimiters() -> None:
    assert Template("t", "[[ 1 ]] {{ 2 }} [[- 3 -]] x", {}, "[[", "]]").run() == "1 {{ 2 }}3x"
