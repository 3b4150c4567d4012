"""Expressions: what they mean, and what is refused."""

import pytest

from jsctl.commands.toolkit.content.expressions import LENGTH_MAX, compiled
from jsctl.errors import UsageError

STREAM: dict[str, object] = {
    "config": {"name": "ORDERS", "subjects": ["orders.new", "orders.old"], "num_replicas": 3},
    "state": {"messages": 1200, "bytes": 2.5, "consumer_count": 0},
    "cluster": {"leader": "n1", "replicas": [{"name": "n2", "lag": 0}, {"name": "n3", "lag": 7}]},
    "mirror": None,
}


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("true", True),
        ("state.messages > 1_000 && state.bytes < 1e2", True),
        ("state.messages >= 1200 and not (config.num_replicas == 1)", True),
        ("!(state.messages < 5) || false", True),
        ('config.name matches "^ORD" ? state.consumer_count == 0 : false', True),
        ("config['name'] == 'ORDERS'", True),
        ('"orders.new" in config.subjects', True),
        ('"orders.mid" not in config.subjects', True),
        ('config.name startsWith "ORD" and config.name endsWith `RS`', True),
        ('lower(config.name) contains "rder"', True),
        ('not (config.name contains "x")', True),
        ("len(config.subjects) == 2 && config.subjects[1] == 'orders.old'", True),
        ("any(cluster.replicas, {#.lag > 5})", True),
        ("all(cluster.replicas, {.lag > 5})", False),
        ("count(cluster.replicas, lag == 0) == 1", True),
        ("none(cluster.replicas, # == nil)", True),
        ("mirror == nil and (mirror?.name ?? 'none') == 'none'", True),
        ("sum(map(cluster.replicas, .lag)) == 7", True),
        ("2 + 3 * 2 ** 3 == 26 and -2 + 4 == 2 and 7 % 4 == 3", True),
        ("state.messages in 1000..2000", True),
        ("nowhere.to.be.found == nil", True),
        ("(1 < 2) == true", True),
        ("sum(config.subjects, len(#)) == 20 and mean([1, 2.5, 4]) == 2.5", True),
        ("median([1, 3, 2, 4]) == 2.5 and median([]) == 0 and max([1, [5]], 2) == 5", True),
        ("reduce(config.subjects, #acc + len(#), 0) == 20 and reduce(1..4, #acc * #) == 24", True),
        ("reduce([1, 2, 3], #acc * #index + #, 10) == 9", True),
        ("map(config.subjects, #index) == [0, 1] and map([[1, 2], [3]], sum(#)) == [3, 3]", True),
        ("config.subjects | map(upper(#)) | join('-') == 'ORDERS.NEW-ORDERS.OLD'", True),
        ("let n = len(config.subjects); let m = n * 2; m == 4 and n == 2", True),
        ("any(config.subjects, {let end = split(#, '.')[1]; end == 'old'})", True),
        ("if state.messages > 1 { true } else if false { 1 } else { false }", True),
        ("config.subjects[0:1] == ['orders.new'] and config.name[-2:] == 'RS'", True),
        ("{'a': 1, b: 2,}.b == 2 and 'a' in {a: 1} and toPairs({a: 1})[0] == ['a', 1]", True),
        ("fromPairs([['a', 1]]).a == 1 and keys({a: 1}) == ['a'] and values({a: 1}) == [1]", True),
        ("find([1, 2, 3], # > 1) == 2 and findLast([1, 2, 3], # > 1) == 3", True),
        ("findIndex([1, 2], # > 1) == 1 and findLastIndex([2, 2], # == 2) == 1", True),
        ("find([1], # > 1) == nil and findIndex([1], # > 1) == nil", True),
        ("groupBy(1..3, # > 1)[true] == [2, 3] and uniq([1, 1.0, '1']) == [1, '1']", True),
        ("uniq([[1], [1], nil, nil]) == [[1], nil] and flatten([[1, [2]], 3]) == [1, 2, 3]", True),
        ("sort([3, 1, 2], 'desc') == [3, 2, 1] and sortBy(['bb', 'a'], len(#))[0] == 'a'", True),
        ("sortBy([1, 3, 2], #, 'desc') == [3, 2, 1] and reverse(1..3) == [3, 2, 1]", True),
        ("concat([1], ['a']) == [1, 'a'] and take(1..9, 2) == [1, 2] and get([1], 5) == nil", True),
        ("type(1) == 'int' and type(1.0) == 'float' and type(nil) == 'nil'", True),
        ("type(config) == 'map' and type(now()) == 'time.Time'", True),
        ("string([1, 'a', 1e8]) == '[1 a 1e+08]' and string(nil) == '<nil>'", True),
        ('toJSON({b: 1, a: [nil]}) == \'{\\n  "a": [\\n    null\\n  ],\\n  "b": 1\\n}\'', True),
        ("fromJSON('{\"a\": [1]}').a == [1] and fromBase64(toBase64('ä')) == 'ä'", True),
        ("split('a,b,c', ',', 2) == ['a', 'b,c'] and split('abc', '') == ['a', 'b', 'c']", True),
        ("splitAfter('a,b', ',') == ['a,', 'b'] and replace('aaa', 'a', 'b', 2) == 'bba'", True),
        ("split('abc', '', 2) == ['a', 'bc'] and repeat('ab', 2) == 'abab'", True),
        (
            "trim('xax', 'x') == 'a' and trimPrefix(' a') == 'a' and lastIndexOf('abb', 'b') == 2",
            True,
        ),
        ("bitshl(1, 65) == 0 and bitushr(-1, 1) == 9223372036854775807 and bitnot(5) == -6", True),
        (
            "bitand(6, 3) == 2 and bitor(6, 3) == 7 and bitxor(6, 3) == 5 and bitnand(6, 3) == 4",
            True,
        ),
        ("bitshl(1, 63) < 0 and bitshr(-8, 1) == -4", True),
        ("round(2.5) == 3 and round(-2.5) == -3 and ceil(1.2) == 2 and floor(-1.2) == -2", True),
        ("int('-5') == -5 and int(2.9) == 2 and float('1e3') == 1000 and abs(-1.5) == 1.5", True),
        ("-7 % 3 == -1 and -2 ** 2 == -4 and 2 ** -1 == 0.5 and 0x1F == 31 and .5 == 1 / 2", True),
        ("0b101 == 5 and 0o17 == 15 and 1 < 2 < 3 and not (3 > 2 > 2)", True),
        ('"\\u00e4\\x41\\101\\t" == "äAA\\t" and \'\\\'\' == "\'"', True),
        ("/* any */ true // of them", True),
        ("1; 2; true", True),
        ("$env.config.name == 'ORDERS' and config?.['name'] == 'ORDERS' and ::len('a') == 1", True),
        ("[true] == [1] or true == 1", False),
        ("date('2020-01-02') - date('2020-01-01') == duration('24h')", True),
        (
            "date('2020-01-01 10:00:00').Hour() == 10 and date('2020-01-01').Unix() == 1577836800",
            True,
        ),
        ("now() > date('2020-01-01') and now() - duration('1h') < now()", True),
        ("date('2020-01-01T00:00:00Z') + duration('1h') > '2020-01-01T00:59:00+00:00'", True),
        ("'2020-02-03T00:00:00Z'.Month() == 2 and date('2020-02-03').Day() == 3", True),
        ("3600000000000 == duration('1h').Nanoseconds() and 7200000000000 > duration('1h')", True),
        ("duration('90m').Hours() == 1.5 and duration('1h') * 2 == 2 * duration('60m')", True),
        (
            "date('2020-01-01').Before(date('2020-01-02')) and string(duration('1h')) == '1h0m0s'",
            True,
        ),
    ],
)
def test_expressions_mean_what_they_say(source: str, meaning: bool) -> None:
    assert compiled(source)(STREAM) is meaning


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "unexpected end at 0"),
        ("state.messages >", "unexpected end"),
        ("a == 'open", 'unexpected "\'" at 5'),
        ("nope(1)", "unknown function nope"),
        ("upper()", "upper: missing a required argument"),
        ("lower('a', 'b')", "lower: too many positional arguments"),
        ("any([true])", "any needs to be told of each element"),
        ("# == 1", "unexpected '#' at 0"),
        ("let len = 1; true", "len at 4 means something already"),
        ("let a = 1; let a = 2; true", "a at 15 means something already"),
        ("let a = 1", "unexpected end at 9"),
        ("nil ?? 1 == 1", "need parentheses"),
        ("if true { true }", "unexpected end"),
        ('"\\q" == "q"', "unknown escape"),
        ("99999999999999999999 > 1", "is no number"),
        ("0x_ > 1", "is no number"),
        ("1x > 1", "unexpected '1' at 0"),
        ("1 +", "unexpected end"),
        ("(" * 200 + "1" + ")" * 200, "too deep"),
        ("1" * (LENGTH_MAX + 1), "too long"),
        ("a b", "unexpected 'b' at 2"),
        ("a not b", "unexpected 'b' at 6"),
        ("1", "does not give true or false"),
        ("nil", "does not give true or false"),
        ("len('abc') + 1", "does not give true or false"),
        ("sum([1, 2])", "does not give true or false"),
        ("1 / 0 > 1", "zero"),
    ],
)
def test_what_is_no_expression_is_told(source: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        compiled(source)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("state.messages", "does not give true or false"),
        ("config.name > 5", "cannot be compared"),
        ("state.messages / 0 > 1", "zero"),
        ("config.name matches '['", "missing closing"),
        ("len(1..1000000) > 1", "too long"),
        ("state && true", "is not true or false"),
        ("9 ** 9 ** 9 > 1", "too large"),
        ("upper(state.messages) == ''", "upper: 1200 is no text"),
        ("config.name startsWith 1", "are not texts"),
        ("len(state.messages) > 1", "has no length"),
        ("any(config.name, true)", "is no list"),
        ("sum(config.subjects) == 1", "cannot be added"),
        ("sort([1, 'a']) == []", "cannot be compared"),
        ("sort([1], 'up') == []", "neither asc nor desc"),
        ("reduce([], #acc) == 1", "nothing to begin with"),
        ("reduce(1..100, #acc * 10, 1) > 1", "too large"),
        ("len(reduce(1..40, #acc + #acc, 'abc')) > 1", "no more than"),
        ("len(reduce(1..40, concat(#acc, #acc), [1])) > 1", "no more than"),
        ("toJSON(reduce(1..60, [#acc, #acc], [1])) == ''", "no more than"),
        ("len(flatten(reduce(1..60, [#acc, #acc], [1]))) > 1", "no more than"),
        ("reduce(1..5000, [#acc], [1]) == reduce(1..5000, [#acc], [1])", "too deep"),
        ("repeat('a', 10000000) == ''", "no more than"),
        ("date('nope') == nil", "invalid date nope"),
        ("now().Nope() == 1", "has no method Nope"),
        ("fromJSON('{') == 1", "line 1"),
        ("(-8) ** 0.5 > 1", "no such root"),
        ("2.5 % 2 > 1", "whole numbers"),
    ],
)
def test_values_that_do_not_fit_are_told(source: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        compiled(source)(STREAM)
