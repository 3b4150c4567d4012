"""The documented example runs as it stands, and its pictures show something."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("spark")
def test_airports(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NATS_URL", "replaced by the example, and put back afterwards")
    monkeypatch.setattr(sys, "argv", ["airports.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "docs" / "examples" / "airports.py"), run_name="__main__")
    out = "".join(capfd.readouterr())
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
