"""`python -m jsctl`."""

import sys

from jsctl.cli import main

sys.exit(main(sys.argv[1:]))
