"""What a health check found, for Nagios, Prometheus, programs and people."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

from jsctl.dataclass import dataclass
from jsctl.render.table import table
from jsctl.render.theme import PLAIN, Theme

EXIT_CODES = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
"""Those of Nagios plugins."""
SECONDS = "s"
_PLAIN_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
"""Other names are written in quotes, among the labels."""
EXPONENT_FROM = 6
"""Powers of ten that are written with an exponent."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number with its thresholds (0: none); `unit` is `s`, `B`, `%` or nothing."""

    name: str
    value: float
    warning: float = 0.0
    critical: float = 0.0
    unit: str = ""
    help: str = ""


@dataclass(slots=True)
class CheckResult:
    """Collects sentences and numbers; the worst sentence decides the status."""

    suite: str
    name: str
    warnings: list[str] = field(default_factory=list)
    criticals: list[str] = field(default_factory=list)
    oks: list[str] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)

    def ok(self, text: str) -> None:
        """Something is as it should be."""
        self.oks.append(text)

    def warn(self, text: str) -> None:
        """Something needs attention."""
        self.warnings.append(text)

    def critical(self, text: str) -> None:
        """Something is wrong."""
        self.criticals.append(text)

    def ok_if_clean(self, text: str) -> None:
        """The one good sentence of a check that says nothing else."""
        if not self.warnings and not self.criticals:
            self.ok(text)

    def measure(
        self,
        name: str,
        value: float,
        *,
        warning: float = 0.0,
        critical: float = 0.0,
        unit: str = "",
        help: str = "",
    ) -> None:
        """A number beside the sentences."""
        self.measures.append(Measure(name, value, warning, critical, unit, help))

    @property
    def status(self) -> str:
        """OK, WARNING or CRITICAL."""
        return "CRITICAL" if self.criticals else "WARNING" if self.warnings else "OK"

    def document(self) -> dict[str, object]:
        """For programs."""
        lists = {"warning": self.warnings, "critical": self.criticals, "ok": self.oks}
        return {
            "status": self.status,
            "check_suite": self.suite,
            "check_name": self.name,
            **{key: list(texts) for key, texts in lists.items() if texts},
            "perf_data": [_measure_document(one) for one in self.measures],
        }


def _measure_document(one: Measure) -> dict[str, object]:
    document: dict[str, object] = {
        "name": one.name,
        "value": _whole_if_so(one.value),
        "warning": _whole_if_so(one.warning),
        "critical": _whole_if_so(one.critical),
    }
    return {**document, "unit": one.unit} if one.unit else document


def _whole_if_so(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value


def nagios(result: CheckResult) -> str:
    """One line: status, sentences, then the numbers behind a bar."""
    words = [result.name]
    words += [f"Crit:{text}" for text in result.criticals]
    words += [f"Warn:{text}" for text in result.warnings]
    words += [f"OK:{text}" for text in result.oks]
    line = f"{result.status} {' '.join(words)}"
    if not result.measures:
        return line
    return f"{line} | {' '.join(_nagios_measure(one) for one in result.measures)}"


def _nagios_measure(one: Measure) -> str:
    digits = 4 if one.unit == SECONDS else 0
    name = f"'{one.name}'" if " " in one.name or "\t" in one.name else one.name
    text = f"{name}={one.value:.{digits}f}{one.unit}"
    if one.warning:
        text += f";{one.warning:.{digits}f}"
    elif one.critical:
        text += ";"
    return f"{text};{one.critical:.{digits}f}" if one.critical else text


def prometheus(results: Sequence[CheckResult], namespace: str) -> str:
    """The numbers and the status of all checks as gauges, by name."""
    families: dict[str, tuple[str, dict[str, float]]] = {}
    for result in results:
        for name, text, labels, value in _gauges(result, namespace):
            families.setdefault(name, (text, {}))[1][labels] = value
    lines: list[str] = []
    for name, (text, values) in sorted(families.items()):
        shown = name if _PLAIN_NAME.fullmatch(name) else _quoted(name)
        lines += [f"# HELP {shown} {text}", f"# TYPE {shown} gauge"]
        for labels, value in sorted(values.items()):
            row = f"{shown}{labels}" if shown == name else f"{{{shown},{labels[1:]}"
            lines.append(f"{row} {short_float(value)}")
    return "\n".join(lines) + "\n"


def _gauges(result: CheckResult, namespace: str) -> Iterator[tuple[str, str, str, float]]:
    """Names, what they mean, labels and values; of two with the same name the last one counts."""
    item = _label(result.name.replace('"', "."))
    family = "_".join(part for part in (namespace, result.suite) if part)
    for one in result.measures:
        text = one.help or f"Data about the NATS CLI check {result.suite}"
        yield f"{family}_{one.name}", text, f'{{item="{item}"}}', one.value
    text = f"Nagios compatible status code for {result.suite}"
    labels = f'{{item="{item}",status="{result.status}"}}'
    name = f"{family}_status_code"
    yield name, text, labels, EXIT_CODES[result.status]


def _quoted(name: str) -> str:
    return '"' + _label(name).replace('"', r"\"") + '"'


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def short_float(value: float) -> str:
    """The shortest text that is this number; large and tiny ones with an exponent, as in Go."""
    if not value:
        return "0"
    sign, digits, ten = _parts(value)
    if -4 <= ten < 0:
        return f"{sign}0.{'0' * (-ten - 1)}{digits}"
    if 0 <= ten < EXPONENT_FROM:
        whole, part = digits[: ten + 1].ljust(ten + 1, "0"), digits[ten + 1 :]
        return f"{sign}{whole}.{part}" if part else f"{sign}{whole}"
    dotted = f"{digits[0]}.{digits[1:]}" if digits[1:] else digits
    return f"{sign}{dotted}e{'-' if ten < 0 else '+'}{abs(ten):02}"


def _parts(value: float) -> tuple[str, str, int]:
    """Sign, digits without zeros around them, and the power of ten of the first one."""
    mantissa, _, exponent = repr(float(abs(value))).partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    ten = len(whole + part) - len(part) - (len(whole + part) - len(digits)) - 1
    return "-" if value < 0 else "", digits.rstrip("0"), ten + int(exponent or 0)


def human(result: CheckResult, theme: Theme = PLAIN) -> str:
    """Two tables: sentences, numbers."""
    parts = [f"{result.name}: {result.status}", ""]
    rows = [["OK", text] for text in result.oks]
    rows += [["Warning", text] for text in result.warnings]
    rows += [["Critical", text] for text in result.criticals]
    if rows:
        parts += ["Status Detail", "", table(["Status", "Message"], rows, theme=theme)]
    if result.measures:
        heads = [
            *("Metric", "Value", "Unit"),
            *("Critical Threshold", "Warning Threshold", "Description"),
        ]
        cells = [
            [
                *(one.name, _commas(one.value), one.unit),
                *(_commas(one.critical), _commas(one.warning), one.help),
            ]
            for one in result.measures
        ]
        parts += ["", "Check Metrics", "", table(heads, cells, theme=theme)]
    return "\n".join(parts) + "\n"


def _commas(value: float) -> str:
    """With thousands commas and three decimals; the rest is cut off."""
    whole, _, part = f"{abs(value):.9f}".partition(".")
    return f"{'-' if value < 0 else ''}{int(whole):,}.{part[:3]}"
