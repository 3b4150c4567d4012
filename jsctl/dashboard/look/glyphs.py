"""The characters that carry a meaning, in two sets: Unicode, and plain ASCII."""

from collections.abc import Mapping

from jsctl.dashboard.model.snapshot import Level, PeerState
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One character per meaning; `sparks` grow from left to right."""

    ok: str
    note: str
    warn: str
    bad: str
    leader: str
    paused: str
    mirror: str
    none: str
    dot: str
    up: str
    down: str
    sparks: str
    bar: str
    bar_end: str
    gap: str
    logo: str
    crumb: str
    refresh: str
    enter: str
    space: str
    sort: str
    sort_up: str
    arrow: str

    def plain(self, text: str) -> str:
        """A text of our own in the characters of this set."""
        return text if self.logo != "#" else text.translate(_PLAIN)

    def level(self, level: Level) -> str:
        """The mark of a severity."""
        return (self.ok, self.note, self.warn, self.bad)[level]

    def peer(self, state: PeerState) -> str:
        """The mark of a replica; none for one that is well."""
        marks = {
            PeerState.LEADER: self.leader,
            PeerState.BEHIND: self.warn,
            PeerState.OFFLINE: self.bad,
        }
        return marks.get(state, "")


_PLAIN = str.maketrans({"µ": "u", "→": ">", "…": "~", "×": "x"})
UNICODE = Glyphs(
    ok="●",
    note="◆",
    warn="▲",
    bad="✖",
    leader="★",
    paused="‖",
    mirror="⇄",
    none="–",
    dot="·",
    up="▲",
    down="▼",
    sparks="▁▂▃▄▅▆",
    bar="━",
    bar_end="╸",
    gap="━",
    logo="⬢",
    crumb="›",
    refresh="⟳",
    enter="⏎",
    space="␣",
    sort="▾",
    sort_up="▴",
    arrow="→",
)
ASCII = Glyphs(
    ok="o",
    note="+",
    warn="!",
    bad="x",
    leader="*",
    paused="^",
    mirror="=",
    none="-",
    dot=".",
    up="^",
    down="v",
    sparks="_.-=#@",
    bar="=",
    bar_end="-",
    gap=".",
    logo="#",
    crumb=">",
    refresh="~",
    enter="enter",
    space="space",
    sort="v",
    sort_up="^",
    arrow="->",
)


def wants_ascii(environ: Mapping[str, str], encoding: str) -> bool:
    """Whether the terminal can do no more than ASCII, or was asked not to."""
    if environ.get("JSCTL_ASCII", "") not in ("", "0"):
        return True
    return encoding.lower().replace("-", "") not in ("utf8", "utf16", "utf32", "")
