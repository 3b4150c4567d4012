"""`kv`: buckets, values, revisions, refusals."""

import pytest

from tests.commands.parity.conftest import BOTH_KINDS, Same

pytestmark = pytest.mark.parametrize("one_server", BOTH_KINDS, indirect=True)

BUCKETS = """
kv
kv ls
kv ls -n
kv info
kv add bad.name
kv add B --history 5 --description "a bucket" --metadata a=b --metadata c=d
kv add B --history 3
kv add H --history 65
kv add H --history 0
kv add X --storage tape
kv add M --marker-ttl 1m --ttl 1h --storage memory --max-value-size 8
kv add R --replicas 3
kv add O --mirror B
kv add S --source B
kv put M k 123456789
kv info B
kv view M
kv status NOPE
kv ls
kv ls -n
kv edit B --ttl 1h --max-value-size 1K --max-bucket-size 1MB --compress
kv edit B --republish-source '>' --republish-destination 'r.>' --republish-headers
kv edit B --history 2 --metadata e=f
kv edit NOPE --ttl 1h
kv del B
kv del B -f
kv rm B -f
kv bogus
"""

VALUES = """
kv add V --history 5
kv put V k v1
kv put V k << from stdin
kv put V k "two words" extra
kv put V .k x
kv put V "a b" x
kv put NOPE k x
kv put V
kv get V k
kv get V k --raw
kv get V k --revision 1
kv get V k --revision 9
kv get V k --revision x
kv get V none
kv get NOPE k
kv put V a.long.one aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee
kv get V a.long.one
kv create V k v
kv create V k2 v
kv update V k v3 7
kv update V k v3 2
kv update V k v3 x
kv history V k
kv history V a.long.one
kv history V none
kv revert V k 1
kv revert V k 1 --force
kv revert V k 99 --force
kv ls V
kv ls V 'a.>'
kv ls V 'none.*'
kv ls V -v
kv ls V -v --display-value
kv ls NOPE
kv del V k
kv del V k -f
kv del V none -f
kv get V k
kv create V k again
kv ls V
kv purge V k2
kv purge V k2 -f
kv history V k2
kv compact V
kv compact V -f
kv del V -f
"""

LIVES = """
kv add T --marker-ttl 1m
kv create T t v --ttl 1h
kv purge T t -f --ttl 1h
kv history T t
kv add N
kv create N t v --ttl 1h
"""


def test_buckets(same: Same) -> None:
    same(BUCKETS)


def test_values(same: Same) -> None:
    same(VALUES)


def test_times_to_live(same: Same) -> None:
    same(LIVES)
