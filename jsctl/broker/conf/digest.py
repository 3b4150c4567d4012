"""The digest of a configuration: two files with the same one say the same thing.

The text that is hashed is the parsed tree as compact JSON with sorted keys, written as Go's
encoder writes it, so that the digest equals the one that nats-server shows.
"""

import hashlib
import json
import math
from datetime import datetime

from jsctl.broker.conf.tree import ConfigNode

ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
SMALLEST_PLAIN_FLOAT = 1e-6
LARGEST_PLAIN_FLOAT = 1e21


def digest(root: ConfigNode) -> str:
    """`sha256:` and the hex digest of a parsed file."""
    text = _json(root) + "\n"
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _json(node: ConfigNode) -> str:
    content = node.content
    if isinstance(content, dict):
        pairs = (f"{_string(key)}:{_json(content[key])}" for key in sorted(content))
        return "{" + ",".join(pairs) + "}"
    if isinstance(content, list):
        return "[" + ",".join(_json(item) for item in content) + "]"
    if isinstance(content, datetime):
        return _string(content.strftime("%Y-%m-%dT%H:%M:%SZ"))
    if isinstance(content, float):
        return _float(content)
    if isinstance(content, str):
        return _string(content)
    return json.dumps(content)


def _string(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    for char, escape in ESCAPES.items():
        quoted = quoted.replace(char, escape)
    return quoted


def _float(number: float) -> str:
    if number == 0 or SMALLEST_PLAIN_FLOAT <= abs(number) < LARGEST_PLAIN_FLOAT:
        if number == math.floor(number):
            return str(int(number))
        return f"{number:.17f}".rstrip("0") if "e" in repr(number) else repr(number)
    return repr(number)
