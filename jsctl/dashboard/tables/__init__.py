"""The columns of the dashboard's tables.

They are columns of reports (`jsctl.render.column`), with a drawing besides: the same keys, values
and sort keys that `--once -o json` prints.
"""
