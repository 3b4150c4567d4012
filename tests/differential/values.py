"""What fields of requests are drawn from: what they may be, and what they may not."""

from random import Random
from typing import Any

SECOND = 1_000_000_000
ODD: tuple[Any, ...] = (
    *(None, True, False, "", "x", "1", 0, 1, -1, 1.5, [], {}, ["x"], [1], {"a": 1}),
    *(2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30),
)
"""Of any type; most are wrong wherever they stand."""
NUMBERS = (0, 1, 2, 3, 5, 10, 100, 1000, -1, -2, 65_536, 2**31 - 1)
SIZES = (0, 1, 10, 1000, 1_048_576, -1, -2, 10**9, 10**15)
TIMES = (
    *(0, 1, 50_000_000, 100_000_000, SECOND, 2 * SECOND, 60 * SECOND, 120 * SECOND, 3600 * SECOND),
    *(-1, -SECOND, 1_000_000, 10**18),
)
MOMENTS = (
    *("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    *("2020-01-01T00:00:00.123456789+02:00", "2020-01-01", "yesterday", ""),
)
BOOLS = (True, True, True, False)
SUBJECTS = (
    *("{p}.a", "{p}.b", "{p}.*", "{p}.>", "{p}.a.b", "{p}.*.c", "{p}.a.>", "{p}", "{p}.a.*"),
    *(
        "origin.a",
        "origin.>",
        ">",
        "*",
        "",
        ".",
        "a b",
        "a..b",
        "{p}.",
        ".{p}",
        "{p}.>.x",
        "{p}.a>",
    ),
    *("$JS.API.>", "$JS.>", "$SYS.>", "$KV.{p}.>", "{p}.é", "$JS.EVENT.>", "\t"),
)
NAMES = ("a", "b", "A-1", "é", "", "x.y", "x*", "x>", "a b", "a/b", "a\\b", "a\tb", "n" * 256, "..")
TEXTS = ("", "x", "é", "d" * 4096, "d" * 4097, "$JS.API", "a b", "{p}")
METADATA: tuple[Any, ...] = (
    *({}, {"a": "b"}, {"a": ""}, {"": "b"}, {"_nats.x": "y"}, {"_nats.level": "7"}),
    *({"_nats.req.level": "2"}, {"m": "v" * 200_000}, {"a": 1}, {"é": "ü"}),
)
TRANSFORMS: tuple[Any, ...] = (
    *({"src": "{p}.>", "dest": "t.{p}.>"}, {"src": "", "dest": "t.>"}, {"src": ">", "dest": "x.>"}),
    *({"src": "{p}.*", "dest": "t.{{wildcard(1)}}"}, {"src": "{p}.*", "dest": "t.{{wildcard(2)}}"}),
    *({"src": "{p}.*", "dest": "{{partition(3,1)}}.x"}, {"src": "{p}.*.*", "dest": "{p}.$2.$1"}),
    *(
        {"src": "{p}.a", "dest": "{p}.b"},
        {"src": "a..b", "dest": "t"},
        {"src": "{p}.>", "dest": ""},
    ),
    *({"src": "{p}.>", "dest": "{p}.a..b"}, {"src": "{p}.*", "dest": "{{unknown(1)}}"}, {}),
    *({"src": "{p}.*", "dest": "t.*.*"}, {"src": "{p}.a", "dest": "t.>"}, {"dest": "t.>"}),
    *(
        {"src": "{p}.*", "dest": "{{split(1,-)}}"},
        {"src": "{p}.*", "dest": "{{slicefromleft(1,0)}}"},
    ),
    *({"src": "{p}.*", "dest": "{{partition(x)}}"}, {"src": "{p}.*", "dest": "{{partition()}}"}),
)


def filled(value: Any, prefix: str) -> Any:
    """`{p}` in texts is what the subjects of a case begin with."""
    if isinstance(value, str):
        return value.replace("{p}", prefix)
    if isinstance(value, list | tuple):
        return [filled(one, prefix) for one in value]
    if isinstance(value, dict):
        return {key: filled(one, prefix) for key, one in value.items()}
    return value


def some(random: Random, values: tuple[Any, ...], most: int = 3) -> list[Any]:
    """A few of them, maybe none, maybe one twice."""
    return [random.choice(values) for _ in range(random.randint(0, most))]
