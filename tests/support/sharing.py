"""Which tests of a parallel run stay together: those of a file, or of all files with one Java.

A worker that meets the first test with a Spark session starts Java and warms it up for half a
minute of CPU time; with a worker for all of them that is done once.
"""

from xdist.scheduler import LoadFileScheduling

SPARK_SESSION = frozenset(
    f"tests/spark/{name}.py"
    for name in (
        "pipeline/test_archive",
        "pipeline/test_commands",
        "pipeline/test_example",
        "pipeline/test_jobs",
        "pipeline/test_replicas",
        "pipeline/test_run",
        "test_connections",
        "test_outages",
        "test_reading",
        "test_secrets",
        "test_streaming",
        "test_writing",
    )
)
"""Files with tests that use the session."""
SHARE_NOTHING = "tests/simulation/"
"""Every test makes its own world, and twenty of one file take minutes."""


def together(nodeid: str) -> str:
    """What a test shares with all that its worker is to run."""
    if nodeid.startswith(SHARE_NOTHING):
        return nodeid
    file = nodeid.partition("::")[0]
    return "a Spark session" if file in SPARK_SESSION else file


class Sharing(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """As `--dist loadfile`, but for the files with a Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)
