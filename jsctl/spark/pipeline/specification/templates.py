"""The text of a new pipeline file, one for each sink; all of them validate as they are."""

from collections.abc import Mapping

_HEAD = """\
# `jsctl pipeline validate {file}` checks this file, `plan` says what a run would do.
name: {name}

source:
  stream: {stream}
  # filter: ["orders.*.paid"]      # only these subjects
  start: earliest                  # latest, a sequence, or a time as 2026-01-31T12:00:00Z
  headers: true

decode:
  format: json                     # none, text, avro, protobuf
  schema: "{schema}"
  on_error: {on_error}
{dead_letter}
# `input` has subject, data, headers, stream, seq, timestamp, ts_ns, the columns of the payload,
# and the whole payload as `value`. The query sees one batch at a time.
transform: |
  {transform}

sink:
{sink}
trigger: {{every: 10s}}              # or: once
limits: {{max_offsets: 200000}}      # messages a batch
checkpoint: {name}.checkpoint
spark: {{master: "local[*]", memory: 1g}}
"""
_DEAD_LETTER = """
dead_letter:                       # what cannot be decoded goes here
  type: parquet
  path: {name}.undecodable
"""
_SELECT = "SELECT subject, seq, timestamp, id, amount FROM input"
_FORWARD = "SELECT concat('{name}.', subject) AS subject, data, headers FROM input WHERE amount > 0"
_SINKS: Mapping[str, tuple[str, str]] = {
    "parquet": (
        _SELECT,
        """\
  type: parquet
  path: {name}.parquet
  partition_by: [day]              # derived from timestamp
  compression: zstd
  compact_every: 100               # merge small batches
""",
    ),
    "delta": (
        _SELECT,
        """\
  type: delta                      # needs pip install 'jsctl[delta]'
  path: {name}.delta
""",
    ),
    "jetstream": (
        _FORWARD,
        """\
  type: jetstream                  # every message is stored once, also after a crash
""",
    ),
    "console": (
        _SELECT,
        """\
  type: console
  rows: 20
""",
    ),
}


def template(name: str, stream: str, sink: str, file: str) -> str:
    """The text of a pipeline file."""
    transform, lines = _SINKS[sink]
    return _HEAD.format(
        name=name,
        file=file,
        stream=stream,
        schema="id BIGINT, amount DOUBLE",
        on_error="dead_letter",
        dead_letter=_DEAD_LETTER.format(name=name),
        transform=transform.format(name=name),
        sink=lines.format(name=name),
    )
