"""Other builds of the compiled loops than the installed ones, for the sanitizers.

As a plugin, `pytest -p tests.support.lane_build`, it takes those in the directory that
`JSCTL_LANE_BUILD` names.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

PACKAGE = "jsctl.broker.accel."
MODULES = ("_lane", "_columns", "_sockets", "_syncs")
VARIABLE = "JSCTL_LANE_BUILD"


def use(directory: Path) -> None:
    """Have this process use the builds there; before anybody asks for the loops."""
    for module in MODULES:
        name = PACKAGE + module
        assert name not in sys.modules, "the installed one is loaded already"
        spec = spec_from_file_location(name, directory / f"{module}.abi3.so")
        assert spec is not None and spec.loader is not None
        made = module_from_spec(spec)
        spec.loader.exec_module(made)
        sys.modules[name] = made


if VARIABLE in os.environ:
    use(Path(os.environ[VARIABLE]))
