"""Bundles of `server generate --source`: questions and templates that somebody else wrote.

Nothing in a bundle is believed: it is read whole and within limits before anything is asked, no
path leaves it or the target, it runs no command and sees neither environment nor network.
"""
