"""Infos of streams and consumers as text: what lists and answers to creations consist of.

A list tells of hundreds of assets, of which the most part never changes: the config is text that is
kept, and what does change is put beside it. The text is what the codec makes of `StreamInfo` and
`ConsumerInfo`, byte for byte.
"""
