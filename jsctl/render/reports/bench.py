"""Results of benchmarks: rates and latencies of each client and of all."""

from collections.abc import Sequence
from math import ceil, sqrt

from jsctl.dataclass import dataclass
from jsctl.render.humanize import number, size

SECOND_NS = 1_000_000_000
CSV_HEAD = "#RunID,ClientID,MsgCount,MsgBytes,MsgsPerSec,BytesPerSec,DurationSecs"
CSV_LATENCIES = (
    "MinLatencyMicroSecs,AvgLatencyMicroSecs,MaxLatencyMicroSecs,P50LatencyMicroSecs,"
    "P90LatencyMicroSecs,P99LatencyMicroSecs,P99.9LatencyMicroSecs,StdDevLatencyMicroSecs"
)
_PERCENTILES = ((50, "P50"), (90, "P90"), (99, "P99"), (99.9, "P99.9"))


@dataclass(frozen=True, slots=True)
class Sample:
    """What one client did: `bytes` are payloads, times are of a monotonic clock.

    `latencies_ns` may be empty; there is one a message, or one a batch.
    """

    messages: int
    bytes: int
    started_ns: int
    ended_ns: int
    latencies_ns: Sequence[int] = ()

    @property
    def seconds(self) -> float:
        """How long it took; never nothing."""
        return max(1, self.ended_ns - self.started_ns) / SECOND_NS

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds

    @property
    def throughput(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of sorted samples, in microseconds."""

    least: float
    mean: float
    most: float
    deviation: float
    percentiles: tuple[float, ...]


def latencies_of(samples_ns: Sequence[int]) -> Latencies | None:
    """Statistics; None without samples. Percentiles are nearest ranks."""
    if not samples_ns:
        return None
    ordered = sorted(samples_ns)
    mean = sum(ordered) / len(ordered)
    deviation = sqrt(sum((value - mean) ** 2 for value in ordered) / len(ordered))
    return Latencies(
        ordered[0] / 1000,
        mean / 1000,
        ordered[-1] / 1000,
        deviation / 1000,
        tuple(at_rank(ordered, percent) / 1000 for percent, _ in _PERCENTILES),
    )


def at_rank(ordered: Sequence[int], percent: float) -> int:
    """The nearest rank of sorted values."""
    return ordered[max(1, ceil(len(ordered) * percent / 100)) - 1]


def together(samples: Sequence[Sample]) -> Sample:
    """All clients as one: from the first start to the last end."""
    return Sample(
        sum(sample.messages for sample in samples),
        sum(sample.bytes for sample in samples),
        min(sample.started_ns for sample in samples),
        max(sample.ended_ns for sample in samples),
        [value for sample in samples for value in sample.latencies_ns],
    )


def result_lines(label: str, samples: Sequence[Sample]) -> list[str]:
    """What is printed in the end."""
    if len(samples) == 1:
        return [f"NATS {label} stats: {_one(samples[0])}"]
    whole = together(samples)
    lines = [
        f"  [{at}] {_one(sample)} ({number(sample.messages)} msgs)"
        for at, sample in enumerate(samples, 1)
    ]
    rates = [sample.rate for sample in samples]
    mean = sum(rates) / len(rates)
    deviation = sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
    lines += [
        "",
        f" NATS {label} aggregated stats: {_rate(whole)}",
        f" message rates min {number(int(min(rates)))} | avg {number(int(mean))} | "
        f"max {number(int(max(rates)))} | stddev {number(int(deviation))} msgs",
    ]
    found = latencies_of(whole.latencies_ns)
    if found is not None:
        parts = [
            f"min {_micro(found.least)}",
            f"avg {_micro(found.mean)}",
            f"max {_micro(found.most)}",
            f"stddev {_micro(found.deviation)}",
        ]
        named = zip(_PERCENTILES, found.percentiles, strict=True)
        parts += [f"{name} {_micro(value)}" for (_, name), value in named]
        parts[-1] = parts[-1].replace(" ", ": ", 1)  # so does nats
        lines.append(" latencies per operation " + " | ".join(parts))
    return lines


def _rate(sample: Sample) -> str:
    return f"{number(int(sample.rate))} msgs/sec ~ {size(int(sample.throughput))}/sec"


def _one(sample: Sample) -> str:
    text = _rate(sample)
    found = latencies_of(sample.latencies_ns)
    if found is None:
        return text
    parts = [
        f"min: {_micro(found.least)}",
        f"avg: {_micro(found.mean)}",
        f"max: {_micro(found.most)}",
    ]
    named = zip(_PERCENTILES, found.percentiles, strict=True)
    parts += [f"{name}: {_micro(value)}" for (_, name), value in named]
    return " ~ ".join([text, *parts])


def _micro(value: float) -> str:
    return f"{value:,.2f}us"


def documents_of(label: str, samples: Sequence[Sample]) -> dict[str, object]:
    """The same for programs."""
    return {
        "benchmark": label,
        "total": _document(together(samples)),
        "clients": [_document(sample) for sample in samples],
    }


def _document(sample: Sample) -> dict[str, object]:
    found = latencies_of(sample.latencies_ns)
    document: dict[str, object] = {
        "messages": sample.messages,
        "bytes": sample.bytes,
        "seconds": sample.seconds,
        "messages_per_second": sample.rate,
        "bytes_per_second": sample.throughput,
    }
    if found is not None:
        names = [name.lower() for _, name in _PERCENTILES]
        document["latency_us"] = {
            "min": found.least,
            "avg": found.mean,
            "max": found.most,
            "stddev": found.deviation,
            **dict(zip(names, found.percentiles, strict=True)),
        }
    return document


def as_bench_csv(run: str, kind: str, samples: Sequence[Sample]) -> str:
    """One line a client; `kind` is P for publishers and S for subscribers."""
    timed = any(sample.latencies_ns for sample in samples)
    lines = [f"{CSV_HEAD},{CSV_LATENCIES}" if timed else CSV_HEAD]
    for at, sample in enumerate(samples):
        cells = [
            run,
            f"{kind}{at}",
            str(sample.messages),
            str(sample.bytes),
            str(int(sample.rate)),
            f"{sample.throughput:.6f}",
            f"{sample.seconds:.6f}",
        ]
        found = latencies_of(sample.latencies_ns)
        if found is not None:
            numbers = (found.least, found.mean, found.most, *found.percentiles, found.deviation)
            cells += [f"{value:.6f}" for value in numbers]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"
