"""The jobs of `pipeline report` and `pipeline audit`: one file a job, its SQL beside it.

A job is a function from `Input` to `Result`; `registry` lists them. The queries run over the views
`messages`, `streams` and `telemetry`, whatever is behind them: a stream or its archive.
"""
