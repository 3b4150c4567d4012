"""`object`: buckets, files in and out, refusals."""

from pathlib import Path

import pytest

from tests.commands.parity.conftest import BOTH_KINDS, Same

pytestmark = pytest.mark.parametrize("one_server", BOTH_KINDS, indirect=True)

SMALL = 60_000
BUCKETS = """
object
object ls
object ls -n
object info
object add bad.name
object add B --description d --metadata a=b --metadata ccc=d --ttl 1h
object add B
object add M --storage memory --max-bucket-size 1K
object add R --replicas 3
object info B
object info NOPE
object ls
object edit B --ttl 2h --max-bucket-size 1G --compress --description new
object edit B --metadata x=y
object edit NOPE
object ls NOPE
object seal B
object seal B -f
object seal NOPE -f
object del B
object del B -f
object del B -f
"""

FILES = """
object add F
object put F h.txt
object put F h.txt
object put F h.txt -f
object put F nofile.txt
object put F
object put F --name in << data from stdin
object put F some.bin --name big --description many -H A:1 --no-progress
object put F some.bin --chunk-size 1000 --no-progress
object put F some.bin -f --name other --no-progress << x
object put F h.txt --name odd -H 'a b:c' -H ' q : r ' -H ':x' -H A:1 -H A:2
object put F h.txt --name odd -H 'a b'
object put NOPE h.txt
object ls F
object ls F -n
object info F big
object info F odd
object info F nix
object get F in -O fresh/o.txt
object get F in -O old.txt
object get F in -O old.txt -f
object get F big -O big.out -f --no-progress
object get F nix
object get NOPE nix
object del F in
object del F in -f
object del F in -f
object info F in
object del F nix -f
object seal F -f
object put F h.txt -f
"""


def test_buckets(same: Same) -> None:
    same(BUCKETS)


def test_files(same: Same) -> None:
    Path("h.txt").write_text("hello\n")
    Path("old.txt").write_text("old\n")
    Path("some.bin").write_bytes(bytes(at * at % 251 for at in range(SMALL)))
    same(FILES)
    assert Path("old.txt").read_text() == "data from stdin"
    assert Path("big.out").read_bytes() == Path("some.bin").read_bytes()
    assert sorted(path.name for path in Path().iterdir() if path.name.startswith(".")) == []
