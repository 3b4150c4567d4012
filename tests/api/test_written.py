"""Documents are written as the library writes them, in fewer steps of the interpreter."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.api import jsontext
from tests.support.steps import steps_of

STEPS_MAX = 300
ODD = ["", "a", ",\n  ", "\n", "{}", '"x": 0', "é\u2028", "<&>", "\\", ",\\n"]
SCALARS = (
    st.sampled_from(ODD)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.sampled_from(ODD) | st.text("ab"), inner)
    ),
    max_leaves=30,
)


def by_library(document: object, indent: int) -> bytes:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ": "), indent=indent)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text.encode("utf-8", "replace")


@given(document=DOCUMENTS, indent=st.integers(1, 4))
def test_an_indent_is_that_of_the_library(document: object, indent: int) -> None:
    assert jsontext.written(document, indent) == by_library(document, indent)


@pytest.mark.parametrize("document", [{"a": float("nan")}, [float("inf")], {1: 2, None: {True: 0}}])
def test_what_no_client_sends_is_written_alike(document: object) -> None:
    assert jsontext.written(document, 2) == by_library(document, 2)


def test_a_page_takes_few_steps_of_the_interpreter() -> None:
    row = {f"field{n}": n for n in range(40)} | {"config": {"subjects": ["a", "b"], "n": {}}}
    page: dict[str, Any] = {"rows": [row] * 100}
    # Some for each bracket; the library takes 4,650, some for each value.
    assert steps_of(lambda: jsontext.written(page, 2)) / len(page["rows"]) < STEPS_MAX
