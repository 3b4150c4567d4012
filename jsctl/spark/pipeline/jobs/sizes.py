"""Sizes: histogram of payloads and headers, and whether compression would pay."""

from collections.abc import Sequence
from typing import Any

from jsctl.spark.pipeline.jobs.model import Chart, Field, Input, Result, Series, Table, Unit

SAMPLE = 2_000
SAMPLE_MAX = 20_000
BLOCK_BYTES = 64 * 1024
"""Servers compress blocks of messages, not single ones; so does the sample."""
WORTH = 0.8
"""A stream whose blocks shrink below this share of their size is worth compressing."""
_SIZES = (
    Field("stream", "Stream"),
    Field("up_to", "Payload up to", Unit.BYTES),
    Field("messages", "Messages", Unit.COUNT),
    Field("bytes", "Bytes", Unit.BYTES),
)
_HEADERS = (
    Field("stream", "Stream"),
    Field("header", "Header"),
    Field("messages", "Messages", Unit.COUNT),
    Field("share", "Share", Unit.RATIO),
    Field("mean_bytes", "Mean Size", Unit.BYTES),
)
_COMPRESSION = (
    Field("stream", "Stream"),
    Field("sampled", "Sampled", Unit.COUNT),
    Field("s2_like", "S2-like", Unit.RATIO),
    Field("zstd", "Zstd", Unit.RATIO),
    Field("verdict", "compression: s2"),
)


def sizes(given: Input) -> Result:
    """Size and header histograms, compressibility."""
    found = given.query("sizes", "sizes")
    sample = given.query("sizes", "sample", sample=SAMPLE, most=SAMPLE_MAX)
    names = list(dict.fromkeys(row["stream"] for row in found))
    tables = (
        Table("sizes", "Payload Sizes", _SIZES, found),
        Table("headers", "Headers", _HEADERS, given.query("sizes", "headers")),
        Table("compression", "Compressibility", _COMPRESSION, [
            compressibility(name, [row for row in sample if row["stream"] == name])
            for name in names
        ]),
    )  # fmt: skip
    series = [
        Series(name, [(row["up_to"], row["messages"]) for row in found if row["stream"] == name])
        for name in names
    ]
    chart = Chart(
        "sizes", "Payload sizes", "bars", Unit.COUNT, series, x_title="payload up to, bytes"
    )
    return Result("sizes", "Sizes", tables, (chart,))


def compressibility(stream: str, sample: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What share of their size a stream's messages keep when blocks of them are compressed.

    Snappy stands for S2, whose format is an extension of it.
    """
    import pyarrow as pa

    blob = b"".join(row["subject"].encode() + bytes(row["data"] or b"") for row in sample)
    blocks = [blob[at : at + BLOCK_BYTES] for at in range(0, len(blob), BLOCK_BYTES)]
    if not blob:
        return {"stream": stream, "sampled": 0, "s2_like": None, "zstd": None, "verdict": "no data"}
    share = {
        codec: sum(pa.compress(block, codec=codec).size for block in blocks) / len(blob)
        for codec in ("snappy", "zstd")
    }
    saved = 1 - share["snappy"]
    verdict = f"worth it, saves {saved:.0%}" if share["snappy"] < WORTH else "not worth it"
    return {
        "stream": stream,
        "sampled": len(sample),
        "s2_like": share["snappy"],
        "zstd": share["zstd"],
        "verdict": verdict,
    }
