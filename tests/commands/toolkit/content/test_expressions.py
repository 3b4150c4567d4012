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
        ("1 < 2 == true", True),
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
        ("config.name matches '['", "unterminated"),
        ("len(1..1000000) > 1", "too long"),
        ("state && true", "is not true or false"),
        ("9 ** 9 ** 9 > 1", "too large"),
    ],
)
def test_values_that_do_not_fit_are_told(source: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        compiled(source)(STREAM)
