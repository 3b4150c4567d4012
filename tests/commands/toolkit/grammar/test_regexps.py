"""Expressions in Go's spelling find what they find there."""

import re
import warnings

import pytest

from jsctl.commands.toolkit.grammar.regexps import compiled, compiled_bytes

FOUND = [
    ("[[:alpha:]]+", "12ab3", "ab"),
    ("[^[:alpha:]]+", "ab12c", "12"),
    ("[[:^alpha:]x]+", "ab1x2c", "1x2"),
    ("[[:word:].-]+", "!a_.-b!", "a_.-b"),
    ("[a[b]+", "x[ab", "[ab"),
    ("[]a]+", "xa]", "a]"),
    ("[a&&b]+", "x&&a", "&&a"),
    (r"[\]a]+", "x]a", "]a"),
    (r"\pL+", "1ü2", "ü"),
    (r"\p{L}\P{L}", "ab1", "b1"),
    (r"\p{^Nd}+", "12ab", "ab"),
    ("(?<name>b)c", "abc", "bc"),
    ("(?P<name>b)c", "abc", "bc"),
    (r"c\z", "abc", "c"),
    (r"\Q(a.\E+", "x(a..", "(a.."),
    (r"\Qa", "xa", "a"),
    ("a{,5}", "aaa{,5}", "a{,5}"),
    ("{", "a{b", "{"),
    ("a{2}", "aaa", "aa"),
    ("(?i)ABC", "xabc", "abc"),
    ("a(?i)B", "ab", "ab"),
    ("a(?i)B|C", "xc", "c"),
    ("(a(?i)B)C", "abc abC", "abC"),
    ("(?i)A(?-i)B", "ab aB", "aB"),
    ("(?s)a.b", "a\nb", "a\nb"),
    ("(?i:A)b", "ab", "ab"),
    ("a(?=b)", "ab", "a"),
    ("", "a", ""),
]


@pytest.mark.parametrize(("pattern", "text", "found"), FOUND, ids=[one[0] for one in FOUND])
def test_it_finds(pattern: str, text: str, found: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        match = compiled(pattern).search(text)
        assert match is not None
        assert match[0] == found
        if pattern.isascii() and text.isascii():
            raw = compiled_bytes(pattern).search(text.encode())
            assert raw is not None
            assert raw[0] == found.encode()


@pytest.mark.parametrize(
    "pattern",
    ["[", "[a", "(", ")", "*", "a**", "\\", r"\p{Greek}", "[[:what:]]", "(?U)a", "[z-a]", "[[:a"],
)
def test_what_is_none_is_an_error(pattern: str) -> None:
    with pytest.raises(re.error, match=r".+"):
        compiled(pattern)


def test_flags_of_a_whole_expression_may_be_taken_back() -> None:
    pattern = compiled("(?-i)No", re.IGNORECASE)
    assert pattern.search("No")
    assert not pattern.search("no")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        (r"a\q", r"invalid escape sequence: `\q`"),
        ("[z-a]", "bad character range z-a at position 1"),
    ],
)
def test_what_is_wrong_is_said_as_go_says_it(pattern: str, said: str) -> None:
    for make in (compiled, compiled_bytes):
        with pytest.raises(re.error) as caught:
            make(pattern)
        assert str(caught.value) == said
