"""Whether what goes between servers is made smaller, and how, as it is configured."""

from jsctl.api.times import format_duration
from jsctl.broker.errors import ProtocolError
from jsctl.dataclass import dataclass

OFF, ACCEPT, AUTO, NOT_SUPPORTED = "off", "accept", "s2_auto", "not supported"
UNCOMPRESSED, FAST, BETTER, BEST = "s2_uncompressed", "s2_fast", "s2_better", "s2_best"
LEVELS = (UNCOMPRESSED, FAST, BETTER, BEST)
"""What `s2_auto` chooses from, for growing round trips."""
MILLISECOND_NS = 1_000_000
THRESHOLDS_NS = (10 * MILLISECOND_NS, 50 * MILLISECOND_NS, 100 * MILLISECOND_NS)


@dataclass(frozen=True, slots=True)
class Compression:
    """A mode by the name that servers tell each other."""

    mode: str = OFF
    thresholds_ns: tuple[int, ...] = THRESHOLDS_NS
    """Of `s2_auto`: round trips up to which each level counts. 0: a level is left out."""

    @property
    def told(self) -> str:
        """As the other side is told."""
        return "" if self.mode == NOT_SUPPORTED else self.mode

    @property
    def shown(self) -> str:
        """As logs name it."""
        thresholds = self.thresholds_ns if self.mode == AUTO else ()
        return f"{{{self.mode} [{' '.join(map(format_duration, thresholds))}]}}"

    def after(self, before: str, rtt_ns: int) -> str:
        """What becomes of a connection that is compressed so far as `before` says; empty when it
        has to be made anew."""
        if before in (NOT_SUPPORTED, self.mode):
            return before
        if before == OFF or self.mode in (OFF, ACCEPT, NOT_SUPPORTED):
            return ""
        return self.level(rtt_ns) if self.mode == AUTO else self.mode

    def level(self, rtt_ns: int) -> str:
        """What `s2_auto` means at a round trip."""
        thresholds = self.thresholds_ns
        for index, up_to_ns in enumerate(thresholds):
            if up_to_ns and rtt_ns <= up_to_ns:
                return LEVELS[index]
        return BEST if len(thresholds) >= len(LEVELS) - 1 else LEVELS[len(thresholds) - 1]


def agreed(own: Compression, other: str, rtt_ns: int) -> str:
    """How this side compresses, or why neither does (`off`, `not supported`). Raises ProtocolError
    for a word that is not known."""
    if other in ("", NOT_SUPPORTED) or own.mode == NOT_SUPPORTED:
        return NOT_SUPPORTED
    if own.mode == OFF:
        return OFF
    if other not in (OFF, ACCEPT, AUTO, *LEVELS):
        raise ProtocolError(f'unsupported route compression mode "{other}"')
    if other == OFF:
        return OFF
    if own.mode == ACCEPT:
        return OFF if other == ACCEPT else FAST if other == AUTO else other
    return own.level(rtt_ns) if own.mode == AUTO else own.mode
