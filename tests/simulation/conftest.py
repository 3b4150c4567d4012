"""Import path of the simulation."""

import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])
if _ROOT not in sys.path:  # The harness is imported as tests.simulation.*
    sys.path.insert(0, _ROOT)
