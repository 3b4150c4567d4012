"""Another build of the lane's compiled loop than the installed one, for the sanitizers.

As a plugin, `pytest -p tests.support.lane_build`, it takes the one that `JSCTL_LANE_BUILD` names.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "jsctl.broker.accel._lane"
VARIABLE = "JSCTL_LANE_BUILD"


def use(build: Path) -> None:
    """Have this process use a build; before anybody asks for the loop."""
    assert NAME not in sys.modules, "the installed one is loaded already"
    spec = spec_from_file_location(NAME, build)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NAME] = module


if VARIABLE in os.environ:
    use(Path(os.environ[VARIABLE]))
