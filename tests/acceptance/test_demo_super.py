"""The demonstration that `make demo-super` runs, from the first line to the last."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone
"""As for the other demonstration."""
DEMO_S = 170
"""On a busy machine; about thirty on an idle one."""


def test_it_runs_to_the_end_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jsctl.demo_super"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=DEMO_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    said = done.stdout
    assert said.count("Stream Report") == 3 and "Inaccessible" not in said
    assert "10,298 of 10,298 messages acknowledged meanwhile" in said
    assert "Super Cluster Report" in said and "Outgoing Gateways" in said
    last = said[said.rindex("Stream Report") :]
    assert "29,298" in last, "what was published while a cluster was gone is there"
    assert "cluster: c1" in last and "c1-n1" in last
    assert all(f"{cluster}-n{number}" in last for cluster in ("c1", "c2") for number in (1, 2, 3))
    assert list(tmp_path.iterdir()) == []
