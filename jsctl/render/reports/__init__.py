"""What reports show: rows made of API objects, and the columns and screens over them.

A room for each group of commands that has several reports, as in `jsctl.commands`.
"""
