"""`jsctl dashboard`: one screen that says whether the cluster is well, worst things first.

Parts, from the wire to the glass; each knows only those before it:

    documents      typed access to JSON documents
    snapshot       what there is to show, as plain data
    tracks, model  replies and events in, snapshots out; the clock is an argument
    judge          how bad each thing is
    link, poller   connections, and who asks what when
    actions        what an operator may change, with its command line and its effects
    look           characters, colours and cells
    widgets, screens, app
    once, web      the same without a terminal

Only this package imports Textual, and only when a dashboard is started.
"""
