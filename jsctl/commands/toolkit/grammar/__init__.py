"""The words of the command line: declarations, their values, the parser, the help pages."""
