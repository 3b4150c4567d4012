"""The documented example runs as it stands, and its pictures show something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.timeout(400)
def test_airports(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "examples" / "airports.py"), str(tmp_path)],
        env={key: value for key, value in os.environ.items() if not key.startswith("NATS_")},
        capture_output=True,
        text=True,
        timeout=390,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    out = done.stdout
    assert "airports: 28,298 rows in 3 batches" in out
    assert "in all 28298" in out
    assert "America  18898" in out, "pyarrow sees what the pipeline wrote"
    assert "SPNH  Laguna Choclococha Airport  PE  14965.0" in out, "and so does DuckDB"
    assert "Exported 28,298 messages of AIRPORTS" in out
    charts = sorted((tmp_path / "charts").iterdir())
    assert [chart.stem for chart in charts] == [
        "capacity",
        "prefixes",
        "sizes",
        "subject-growth",
        "subjects",
    ]
    assert all(chart.read_bytes().startswith(PNG) for chart in charts)
    assert (tmp_path / "report.html").read_text().count("<svg") == len(charts)
