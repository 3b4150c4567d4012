"""What all groups of commands build on; it knows none of them.

`grammar` says what words a command takes, `invocation` is one run of it, and the other rooms hold
what some groups have in common: `assets` for streams and consumers, `content` for messages,
`monitoring` for reports on servers.
"""
