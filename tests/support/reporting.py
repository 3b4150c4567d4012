"""What workers of a parallel run tell: not that something began, was prepared, or was put away, but
what each test came to. For each of 13,000 tests it would be taken apart and put together again,
which took a quarter of what a test costs that does nothing."""

from typing import Any

import pytest


def is_wanted(event: str, words: dict[str, Any]) -> bool:
    """Whether who reads the dots learns something from it."""
    if event == "testreport":
        data = words["data"]
        return data["when"] == "call" or data["outcome"] != "passed" or bool(data["sections"])
    return event != "logstart"


def tell_less(config: pytest.Config) -> None:
    """In a worker, unless somebody asked for more than dots."""
    asked = config.option.verbose > 0 or config.option.xmlpath or config.option.durations
    for plugin in config.pluginmanager.get_plugins():
        # Its module is run in a worker by another name, so that its class is not what is imported.
        if hasattr(plugin, "sendevent") and not asked:
            _quieten(plugin)


def _quieten(worker: Any) -> None:
    send = worker.sendevent

    def send_wanted(event: str, **words: Any) -> None:
        if is_wanted(event, words):
            send(event, **words)

    worker.sendevent = send_wanted
