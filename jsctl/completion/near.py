"""Names spelled like one that nobody knows: for errors that are shown to people.

Asked for as completions are: within their short deadline, and from their cache.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from jsctl.completion.names import known_names
from jsctl.completion.words import flags_of, named_values

KINDS = ("context", "stream", "bucket", "object-bucket", "consumer")
"""Those in which a name is looked for, the ones that others need first."""
NAMES_MAX = 3


def near_hints(words: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """What the first name that is not known may have meant; empty if nothing is like it."""
    flags = flags_of(words)
    found = sorted(
        (one for one in named_values(words) if one[0] in KINDS), key=lambda one: KINDS.index(one[0])
    )
    for kind, value, values in found:
        names = [name for name, _ in known_names(kind, values, flags, environ)]
        if value not in names:
            return did_you_mean(value, names)
    return ()


def did_you_mean(word: str, names: Sequence[str]) -> tuple[str, ...]:
    """A hint with names that are spelled alike, capitals or not."""
    folded = {one.lower(): one for one in names}
    near = [folded[one] for one in get_close_matches(word.lower(), folded, NAMES_MAX)]
    return (f"did you mean {', '.join(near)}?",) if near else ()
