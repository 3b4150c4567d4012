"""Monitoring pages of a server, and what keys they have."""

import json
import urllib.error
import urllib.request
from typing import Any

from jsctl.testing import Broker


def keys(document: Any, prefix: str = "") -> set[str]:
    """Paths of all keys; elements of a list count as one, and so do names that are data."""
    if isinstance(document, list):
        return {key for item in document for key in keys(item, prefix)}
    found: set[str] = set()
    if isinstance(document, dict):
        for key, value in document.items():
            path = f"{prefix}{key}"
            found |= {path} | keys(value, f"{path}.")
    return found


def page(server: Broker, path: str) -> tuple[int, Any]:
    """Status and document; texts as they are."""
    try:
        with urllib.request.urlopen(server.monitor_url + path, timeout=30) as answer:
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            status, body = error.code, error.read()
    try:
        return status, json.loads(body)
    except ValueError:
        return status, body.decode()
