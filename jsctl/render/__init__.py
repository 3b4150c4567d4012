"""Plain data -> text: tables, info screens, JSON, YAML, CSV, Markdown.

Nothing here asks a server or knows a screen. Reports are rows of dataclasses and the columns
that show them; the command line and the dashboard use the same ones.
"""
