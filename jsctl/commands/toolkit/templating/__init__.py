"""The language of Go's `text/template`: bodies of messages, translations and bundles are in it.

It knows nothing of commands. Values are those of JSON, and `Record`s. What a template means and how
it is refused is what the package of Go's library does, with its words, since users look them up.
"""
