"""`jsctl dashboard`: one screen that says whether the cluster is well, worst things first.

Parts, from the wire to the glass; each knows only those before it:

    model          replies and events in, snapshots out: plain data, judged, the clock an argument
    connection     links to the servers, and who asks what when
    actions        what an operator may change, with its command line and its effects
    look           characters, colours and cells
    frame          all that a view draws from at one moment
    widgets        what draws
    tables         the columns of all tables
    screens        views and dialogs; what they want done they ask for by messages
    app            holds the connection and the screens, and does what they ask for
    once, web      the same without a terminal

Only this package imports Textual, and only when a dashboard is started.
"""
